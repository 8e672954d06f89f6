// Package awsenv turns the environment that Lambda gives every function into an aws.Config.
//
// The SDK's config package would do that too, but it looks in files, profiles and instance metadata that don't exist
// in Lambda, and linking it costs each cold start about a millisecond. Here the configuration is read once, at
// start-up, from standard variables alone:
//
//	AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY   required
//	AWS_SESSION_TOKEN                                      the token of temporary keys
//	AWS_ENDPOINT_URL_S3, _DYNAMODB, _STS, _SQS ...         another endpoint for one service
//	AWS_ENDPOINT_URL                                       another endpoint for all others
//	AWS_CA_BUNDLE                                          a PEM file: trust these authorities alone
//
// Service clients are made where they are used, so that a function links no client but its own:
//
//	env, err := awsenv.Load()
//	client := dynamodb.NewFromConfig(env.Config(), func(o *dynamodb.Options) {
//		o.BaseEndpoint = env.BaseEndpoint("DYNAMODB")
//	})
package awsenv

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Env is the AWS side of a function's environment. Make it with Load or Parse; copies share their connections.
type Env struct {
	Region   string
	Function string // AWS_LAMBDA_FUNCTION_NAME, "" outside Lambda

	credentials aws.CredentialsProvider
	endpoints   map[string]string // by upper-case service name, "" for the one of all others
	transport   http.RoundTripper
}

// Load reads the environment of the process. The error names every variable that is missing or wrong.
func Load() (Env, error) { return Parse(os.Environ()) }

const endpointPrefix = "AWS_ENDPOINT_URL"

// Parse reads an environment given as KEY=value pairs, such as os.Environ returns. The error names every variable that
// is missing or wrong, never a value.
func Parse(environ []string) (Env, error) {
	vars := make(map[string]string, len(environ))
	for _, pair := range environ {
		key, value, _ := strings.Cut(pair, "=")
		vars[key] = value
	}
	var errs []error
	required := func(name string) string {
		v := vars[name]
		if v == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return v
	}
	env := Env{
		Region:    required("AWS_REGION"),
		Function:  vars["AWS_LAMBDA_FUNCTION_NAME"],
		endpoints: map[string]string{},
	}
	env.credentials = credentials.NewStaticCredentialsProvider(
		required("AWS_ACCESS_KEY_ID"), required("AWS_SECRET_ACCESS_KEY"), vars["AWS_SESSION_TOKEN"])
	for name, value := range vars {
		service, ok := strings.CutPrefix(name, endpointPrefix)
		if !ok || value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/")+u.RawQuery != "" || u.User != nil {
			errs = append(errs, fmt.Errorf("%s must be a URL without a path, such as http://127.0.0.1:4566", name))
			continue
		}
		env.endpoints[strings.TrimPrefix(service, "_")] = strings.TrimSuffix(value, "/")
	}
	var roots *x509.CertPool
	if path := vars["AWS_CA_BUNDLE"]; path != "" {
		var err error
		if roots, err = readRoots(path); err != nil {
			errs = append(errs, fmt.Errorf("AWS_CA_BUNDLE: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Env{}, err
	}
	env.transport = newTransport(roots)
	return env, nil
}

// Credentials returns the keys of the environment, those of the function's own role. Lambda replaces them together
// with the process, without telling when they end: what must not outlive them is not to be signed with them.
func (e Env) Credentials() aws.CredentialsProvider { return e.credentials }

// Endpoint returns the URL configured for a service, such as "S3", or "" when the service is to be found at its usual
// place.
func (e Env) Endpoint(service string) string {
	if u, ok := e.endpoints[service]; ok {
		return u
	}
	return e.endpoints[""]
}

// BaseEndpoint is Endpoint as the options of SDK clients want it: nil for the usual place.
func (e Env) BaseEndpoint(service string) *string {
	if u := e.Endpoint(service); u != "" {
		return &u
	}
	return nil
}

// Config returns the configuration for SDK clients. A call makes up to three attempts of AttemptTimeout each, pauses
// included it gives up within some seven seconds, in time to answer the client of an HTTP API.
func (e Env) Config() aws.Config {
	return aws.Config{
		Region:                     e.Region,
		Credentials:                e.credentials,
		HTTPClient:                 e.HTTPClient(AttemptTimeout),
		Retryer:                    newRetryer,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
}

// HTTPClient returns a client that gives up a single attempt, its body included, after timeout. All clients of an Env
// share one pool of connections. Redirects are not followed.
func (e Env) HTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     e.transport,
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
