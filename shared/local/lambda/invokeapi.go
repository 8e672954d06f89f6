package lambda

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Handler serves Lambda's Invoke API:
//
//	POST /2015-03-31/functions/{name}/invocations
//
// find looks a function up by its name (an ARN is reduced to the name). Answers are
// those of the service: 200 with the payload, and X-Amz-Function-Error when the
// function failed; 404, 413, 429 with a type and a message. Invocations are
// synchronous; the asynchronous type is refused.
func Handler(find func(name string) *Function) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if i := strings.LastIndex(name, ":function:"); i >= 0 {
			name = name[i+len(":function:"):]
		}
		f := find(name)
		if f == nil {
			invokeError(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
			return
		}
		if t := r.Header.Get("X-Amz-Invocation-Type"); t != "" && t != "RequestResponse" {
			invokeError(w, http.StatusBadRequest, "InvalidParameterValueException", "The local stack invokes with the type RequestResponse only")
			return
		}
		event, err := io.ReadAll(io.LimitReader(r.Body, MaxPayload+1))
		if err != nil {
			return // the caller went away
		}
		if len(event) == 0 {
			event = []byte("{}")
		}
		if len(event) <= MaxPayload && !json.Valid(event) {
			invokeError(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
			return
		}
		res, err := f.Invoke(r.Context(), event)
		switch {
		case errors.Is(err, ErrTooLarge):
			invokeError(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", "Request must be smaller than 6291456 bytes for the InvokeFunction operation")
			return
		case errors.Is(err, ErrThrottled):
			invokeError(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
			return
		case err != nil:
			invokeError(w, http.StatusInternalServerError, "ServiceException", err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Amz-Executed-Version", "$LATEST")
		if res.FunctionError != "" {
			w.Header().Set("X-Amz-Function-Error", res.FunctionError)
		}
		w.Write(res.Payload)
	})
	return mux
}

func invokeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", kind)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"Type": "User", "Message": message})
}
