package template

import "strconv"

// api reads an AWS::Serverless::HttpApi.
func (d *document) api(r *resource, f *fields, t *Template) {
	f.want("StageName", "paths have no stage prefix", "$default")
	if t.API == nil {
		t.API = &API{ID: r.id}
	} else if t.API.ID != r.id {
		d.failf(r.line, "%s is a second API beside %s: the local stack serves one", r.id, t.API.ID)
		return
	}
	if f.has("CorsConfiguration") {
		c := f.sub("CorsConfiguration")
		t.API.CORS = &CORS{
			Origins: c.strings("AllowOrigins"), Methods: c.strings("AllowMethods"),
			Headers: c.strings("AllowHeaders"), Expose: c.strings("ExposeHeaders"),
			MaxAgeSeconds: c.number("MaxAge", 0), Credentials: c.flag("AllowCredentials", false),
		}
		c.done()
	}
	limits := f.sub("DefaultRouteSettings")
	t.API.Rate, t.API.Burst = limits.number("ThrottlingRateLimit", 0), limits.number("ThrottlingBurstLimit", 0)
	limits.done()
}

// role reads an AWS::IAM::Role. Its ARN and its longest session matter to code
// that assumes it; permissions are cloud-only.
func (d *document) role(r *resource, f *fields, t *Template) {
	f.raw("RoleName")
	name := d.name(r)
	t.Roles = append(t.Roles, Role{ID: r.id, Name: name, ARN: d.iamARN(name), MaxSessionSeconds: f.number("MaxSessionDuration", 3600)})
}

// distribution reads an AWS::CloudFront::Distribution: the headers policy of its
// default behaviour goes to the content host, which otherwise passes through.
func (d *document) distribution(r *resource, f *fields, t *Template) {
	if t.Content != nil {
		d.failf(r.line, "%s is a second distribution: the local stack has one content host", r.id)
	}
	t.Content = &Content{ID: r.id}
	config := f.sub("DistributionConfig")
	behaviour := config.sub("DefaultCacheBehavior")
	d.policyRef = behaviour.str("ResponseHeadersPolicyId")
	behaviour.done()
	config.done()
}

// headersPolicy reads an AWS::CloudFront::ResponseHeadersPolicy.
func (d *document) headersPolicy(r *resource, f *fields, _ *Template) {
	policy := Content{ID: r.id}
	add := func(name, value string) { policy.Headers = append(policy.Headers, Header{name, value}) }
	config := f.sub("ResponseHeadersPolicyConfig")
	config.raw("Name")
	config.raw("Comment")
	security := config.sub("SecurityHeadersConfig")
	// one reads a security header that is a mapping with Override and, mostly, a value.
	one := func(key, header, property, fixed string) {
		if !security.has(key) {
			return
		}
		s := security.sub(key)
		s.flag("Override", true)
		value := fixed
		if property != "" {
			value = s.required(property)
		}
		add(header, value)
		s.done()
	}
	one("ContentTypeOptions", "X-Content-Type-Options", "", "nosniff")
	one("ContentSecurityPolicy", "Content-Security-Policy", "ContentSecurityPolicy", "")
	one("FrameOptions", "X-Frame-Options", "FrameOption", "")
	one("ReferrerPolicy", "Referrer-Policy", "ReferrerPolicy", "")
	if security.has("StrictTransportSecurity") {
		s := security.sub("StrictTransportSecurity")
		s.flag("Override", true)
		value := "max-age=" + strconv.Itoa(s.number("AccessControlMaxAgeSec", 0))
		if s.flag("IncludeSubdomains", false) {
			value += "; includeSubDomains"
		}
		if s.flag("Preload", false) {
			value += "; preload"
		}
		add("Strict-Transport-Security", value)
		s.done()
	}
	security.done()
	custom := config.sub("CustomHeadersConfig")
	for _, item := range custom.items("Items") {
		add(item.required("Header"), item.required("Value"))
		item.flag("Override", true)
		item.done()
	}
	custom.done()
	if config.has("CorsConfig") {
		c := config.sub("CorsConfig")
		c.want("OriginOverride", "the bucket sees no Origin, so it has nothing to say", "true")
		// items reads a list that CloudFront wraps in Items.
		items := func(key string) []string {
			s := c.sub(key)
			defer s.done()
			return s.strings("Items")
		}
		policy.CORS = &CORS{
			Origins: items("AccessControlAllowOrigins"), Methods: items("AccessControlAllowMethods"),
			Headers: items("AccessControlAllowHeaders"), Expose: items("AccessControlExposeHeaders"),
			MaxAgeSeconds: c.number("AccessControlMaxAgeSec", 0), Credentials: c.flag("AccessControlAllowCredentials", false),
		}
		c.done()
	}
	config.done()
	d.policies[r.id] = policy
}
