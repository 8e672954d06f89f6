package template

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// ref resolves !Ref: a pseudo parameter, a parameter or a resource.
func (d *document) ref(line int, name string) *yaml.Node {
	switch name {
	case "AWS::NoValue":
		return nil
	case "AWS::Region":
		return scalar(line, d.opt.Region)
	case "AWS::AccountId":
		return scalar(line, d.opt.AccountID)
	case "AWS::StackName":
		return scalar(line, d.opt.StackName)
	case "AWS::StackId":
		return scalar(line, d.arn("cloudformation", "stack/"+d.opt.StackName+"/local"))
	case "AWS::Partition":
		return scalar(line, "aws")
	case "AWS::URLSuffix":
		return scalar(line, "amazonaws.com")
	}
	if v, ok := d.params[name]; ok {
		return v
	}
	return d.attribute(line, name, "")
}

// getAtt resolves !GetAtt in its dotted and its list form.
func (d *document) getAtt(line int, arg *yaml.Node) *yaml.Node {
	id, attr, ok := strings.Cut(arg.Value, ".")
	if arg.Kind == yaml.SequenceNode && len(arg.Content) == 2 {
		id, attr, ok = arg.Content[0].Value, arg.Content[1].Value, true
	}
	if !ok || attr == "" {
		d.failf(line, "GetAtt takes Resource.Attribute")
		return nil
	}
	return d.attribute(line, id, attr)
}

// attribute is the value of a resource's attribute, or of its Ref when attr is empty.
func (d *document) attribute(line int, id, attr string) *yaml.Node {
	r := d.byID[id]
	if r == nil {
		// SAM makes a role per function; templates may name it.
		if fn := d.byID[strings.TrimSuffix(id, "Role")]; fn != nil && fn.kind == kindFunction {
			name := d.physical(id)
			if attr == "Arn" {
				return scalar(line, d.iamARN(name))
			}
			return scalar(line, name)
		}
		d.failf(line, "nothing in the template is called %q", id)
		return nil
	}
	if !d.exists(r) {
		d.failf(line, "%s is used here, but its condition is false", id)
		return nil
	}
	name, host := d.name(r), d.opt.Hosts
	values := map[string]string{}
	switch r.kind {
	case kindFunction:
		values = map[string]string{"": name, "Arn": d.arn("lambda", "function:"+name)}
	case kindAPI:
		values = map[string]string{"": id}
	case kindTable:
		arn := d.arn("dynamodb", "table/"+name)
		values = map[string]string{"": name, "Arn": arn, "StreamArn": arn + "/stream/local"}
	case kindBucket:
		values = map[string]string{"": name, "Arn": "arn:aws:s3:::" + name,
			"DomainName":         name + ".s3.amazonaws.com",
			"RegionalDomainName": name + ".s3." + d.opt.Region + ".amazonaws.com"}
	case kindQueue:
		url := "http://" + host.Queues + "/" + d.opt.AccountID + "/" + name
		values = map[string]string{"": url, "QueueUrl": url, "QueueName": name, "Arn": d.arn("sqs", name)}
	case kindRole:
		values = map[string]string{"": name, "Arn": d.iamARN(name)}
	case kindDistribution:
		values = map[string]string{"": id, "Id": id, "DomainName": host.Content}
	case kindHeadersPolicy:
		values = map[string]string{"": id, "Id": id}
	}
	if v, ok := values[attr]; ok {
		return scalar(line, v)
	}
	if attr == "" {
		attr = "Ref"
	}
	d.failf(line, "%s of %s (%s) has no value in the local stack: only the cloud has it, or it has to be implemented there", attr, id, r.kind)
	return nil
}

// nameProperty is where each type carries a name of its own.
var nameProperty = map[string]string{
	kindFunction: "FunctionName", kindTable: "TableName", kindBucket: "BucketName",
	kindQueue: "QueueName", kindRole: "RoleName",
}

// name is the physical name of a resource.
func (d *document) name(r *resource) string {
	if v := d.opt.Names[r.id]; v != "" {
		return v
	}
	if n := child(r.props, nameProperty[r.kind]); n != nil {
		if v := d.resolve(n); v != nil {
			return v.Value
		}
	}
	if r.kind == kindBucket {
		return strings.ToLower(d.physical(r.id))
	}
	return d.physical(r.id)
}

func (d *document) arn(service, resource string) string {
	return "arn:aws:" + service + ":" + d.opt.Region + ":" + d.opt.AccountID + ":" + resource
}

func (d *document) iamARN(role string) string {
	return "arn:aws:iam::" + d.opt.AccountID + ":role/" + role
}
