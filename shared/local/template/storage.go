package template

// table reads an AWS::DynamoDB::Table.
func (d *document) table(r *resource, f *fields, t *Template) {
	f.raw("TableName")
	types := map[string]string{}
	for _, a := range f.items("AttributeDefinitions") {
		types[a.required("AttributeName")] = a.required("AttributeType")
		a.done()
	}
	table := Table{ID: r.id, Name: d.name(r)}
	table.PartitionKey, table.SortKey = d.keys(f, types)
	for _, g := range f.items("GlobalSecondaryIndexes") {
		index := Index{Name: g.required("IndexName")}
		index.PartitionKey, index.SortKey = d.keys(g, types)
		p := g.sub("Projection")
		index.Projection = p.required("ProjectionType")
		index.NonKey = p.strings("NonKeyAttributes")
		p.done()
		g.done()
		table.Indexes = append(table.Indexes, index)
	}
	ttl := f.sub("TimeToLiveSpecification")
	if ttl.flag("Enabled", ttl.has("AttributeName")) {
		table.TTLAttribute = ttl.str("AttributeName")
	} else {
		ttl.raw("AttributeName")
	}
	ttl.done()
	stream := f.sub("StreamSpecification")
	table.StreamView = stream.str("StreamViewType")
	stream.done()
	t.Tables = append(t.Tables, table)
}

// keys reads a KeySchema.
func (d *document) keys(f *fields, types map[string]string) (partition, sort Key) {
	for _, k := range f.items("KeySchema") {
		name := k.required("AttributeName")
		kind, ok := types[name]
		if !ok {
			d.failf(k.node.Line, "key attribute %s of %s has no entry in AttributeDefinitions", name, f.id)
		}
		switch role := k.required("KeyType"); role {
		case "HASH":
			partition = Key{name, kind}
		case "RANGE":
			sort = Key{name, kind}
		default:
			d.failf(k.node.Line, "KeyType of %s must be HASH or RANGE, not %q", name, role)
		}
		k.done()
	}
	if partition.Name == "" {
		d.failf(f.node.Line, "%s.KeySchema of %s needs a HASH key", f.path, f.id)
	}
	return partition, sort
}

// bucket reads an AWS::S3::Bucket.
func (d *document) bucket(r *resource, f *fields, t *Template) {
	f.raw("BucketName")
	b := Bucket{ID: r.id, Name: d.name(r)}
	n := f.sub("NotificationConfiguration")
	for _, q := range n.items("QueueConfigurations") {
		note := Notification{Queue: d.queueName(q, "Queue")}
		for _, e := range q.strings("Event") {
			if e != "s3:ObjectCreated:*" {
				d.failf(q.line("Event"), "event %s of bucket %s is not honoured by the local stack: it sends s3:ObjectCreated:*", e, r.id)
			}
		}
		filter := q.sub("Filter")
		key := filter.sub("S3Key")
		for _, rule := range key.items("Rules") {
			switch name := rule.required("Name"); name {
			case "prefix":
				note.Prefix = rule.str("Value")
			case "suffix":
				note.Suffix = rule.str("Value")
			default:
				d.failf(rule.node.Line, "notification filters are prefix and suffix, not %q", name)
			}
			rule.done()
		}
		key.done()
		filter.done()
		q.done()
		b.Notifications = append(b.Notifications, note)
	}
	n.done()
	c := f.sub("CorsConfiguration")
	for _, rule := range c.items("CorsRules") {
		b.CORS = append(b.CORS, BucketCORS{
			Origins: rule.strings("AllowedOrigins"), Methods: rule.strings("AllowedMethods"),
			Headers: rule.strings("AllowedHeaders"), Expose: rule.strings("ExposedHeaders"),
			MaxAgeSeconds: rule.number("MaxAge", 0),
		})
		rule.raw("Id")
		rule.done()
	}
	c.done()
	t.Buckets = append(t.Buckets, b)
}

// queue reads an AWS::SQS::Queue.
func (d *document) queue(r *resource, f *fields, t *Template) {
	f.raw("QueueName")
	f.want("FifoQueue", "it has standard queues", "false")
	q := Queue{
		ID: r.id, Name: d.name(r),
		VisibilitySeconds: f.number("VisibilityTimeout", 30),
		RetentionSeconds:  f.number("MessageRetentionPeriod", 345600),
		DelaySeconds:      f.number("DelaySeconds", 0),
	}
	if f.has("RedrivePolicy") {
		p := f.sub("RedrivePolicy")
		q.DeadLetter = d.queueName(p, "deadLetterTargetArn")
		q.MaxReceives = p.number("maxReceiveCount", 0)
		if q.MaxReceives < 1 {
			d.failf(p.node.Line, "RedrivePolicy of %s needs a maxReceiveCount of 1 or more", r.id)
		}
		p.done()
	}
	t.Queues = append(t.Queues, q)
}

// link checks the names that one view takes from another.
func (d *document) link(t *Template) {
	queues := map[string]bool{"": true}
	for _, q := range t.Queues {
		queues[q.Name] = true
	}
	tables := map[string]Table{}
	for _, table := range t.Tables {
		tables[table.Name] = table
	}
	check := func(id, queue string) {
		if !queues[queue] {
			d.failf(d.lineOf(id), "%s names queue %s, which the template does not declare", id, queue)
		}
	}
	for _, q := range t.Queues {
		check(q.ID, q.DeadLetter)
	}
	for _, b := range t.Buckets {
		for _, n := range b.Notifications {
			check(b.ID, n.Queue)
		}
	}
	for _, fn := range t.Functions {
		for _, s := range fn.Queues {
			check(fn.ID, s.Queue)
		}
		for _, s := range fn.Streams {
			check(fn.ID, s.OnFailure)
			if table, ok := tables[s.Table]; !ok || table.StreamView == "" {
				d.failf(fn.Line, "%s reads the stream of %s, which has none: set StreamSpecification", fn.ID, s.Table)
			}
		}
	}
	if t.Content != nil {
		id := t.Content.ID
		if policy, ok := d.policies[d.policyRef]; ok {
			t.Content.Headers, t.Content.CORS = policy.Headers, policy.CORS
		} else if d.policyRef != "" {
			d.failf(d.lineOf(id), "%s attaches response headers policy %s, which the template does not declare", id, d.policyRef)
		}
	}
}

func (d *document) lineOf(id string) int {
	if r := d.byID[id]; r != nil {
		return r.line
	}
	return 0
}
