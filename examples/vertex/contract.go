// Package contract is an HTTP server that takes what Discovery Engine takes, by Google's own
// definition of the API: package discoveryenginepb, which is generated from it.
//
// From the definition are the paths, the bodies, and the names and the types of fields. So is which
// fields a request must have, and which only an answer may. A request that does not fit is refused.
// What the methods do is ours, by their documentation: nobody has compared it with the service.
//
// It is a module of its own, so that lull's programs need neither protobuf nor gRPC.
package contract

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	pb "cloud.google.com/go/discoveryengine/apiv1/discoveryenginepb"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Server holds the documents of any number of data stores. It is an http.Handler, safe for
// concurrent use.
type Server struct {
	// Missing are the data stores that do not exist. Every other does.
	Missing []string
	// Structs has documents returned as structData, with numbers as doubles.
	Structs bool
	// Token is what requests must have; empty for none.
	Token string

	mu    sync.Mutex
	there map[string]*pb.Document // by name
}

// New returns a server without documents.
func New() *Server { return &Server{there: map[string]*pb.Document{}} }

// An Error is one of Google's canonical errors.
type Error struct {
	HTTP            int
	Status, Message string
}

func (e *Error) Error() string { return e.Status + ": " + e.Message }

func invalid(format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

// A binding is one way to call a method over HTTP.
type binding struct {
	method   protoreflect.MethodDescriptor
	verb     string
	path     *regexp.Regexp
	variable string // the field that the path fills
	body     string // the field that the body fills, * for the whole request
}

var bindings = bound(
	pb.File_google_cloud_discoveryengine_v1_document_service_proto,
	pb.File_google_cloud_discoveryengine_v1_search_service_proto)

// bound reads the bindings from the definition.
func bound(files ...protoreflect.FileDescriptor) (all []binding) {
	for _, file := range files {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				rule, _ := proto.GetExtension(methods.Get(j).Options(), annotations.E_Http).(*annotations.HttpRule)
				for _, r := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
					verb, path := pattern(r)
					field, expression := compiled(path)
					all = append(all, binding{methods.Get(j), verb, expression, field, r.GetBody()})
				}
			}
		}
	}
	return all
}

func pattern(r *annotations.HttpRule) (verb, path string) {
	switch p := r.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	}
	panic("a binding of another kind: " + r.String())
}

var variable = regexp.MustCompile(`\{([a-z_.]+)=([^}]+)\}`)

// compiled makes an expression of a template such as /v1/{name=projects/*/documents/*}.
func compiled(template string) (field string, expression *regexp.Regexp) {
	m := variable.FindStringSubmatchIndex(template)
	before, inside, after := template[:m[0]], template[m[4]:m[5]], template[m[1]:]
	inside = strings.ReplaceAll(regexp.QuoteMeta(inside), `\*`, `[^/]+`)
	return template[m[2]:m[3]], regexp.MustCompile("^" + regexp.QuoteMeta(before) + "(" + inside + ")" + regexp.QuoteMeta(after) + "$")
}

// ServeHTTP answers as the service would.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.serve(r)
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if err != nil {
		w.WriteHeader(err.HTTP)
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone
			"error": map[string]any{"code": err.HTTP, "message": err.Message, "status": err.Status},
		})
		return
	}
	text, failed := protojson.Marshal(answer)
	if failed != nil {
		panic(failed)
	}
	_, _ = w.Write(text) // the client has gone
}

func (s *Server) serve(r *http.Request) (proto.Message, *Error) {
	if s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token {
		return nil, &Error{http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials."}
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, invalid("the body cannot be read")
	}
	for _, b := range bindings {
		m := b.path.FindStringSubmatch(r.URL.Path)
		if m == nil || b.verb != r.Method {
			continue
		}
		request, fault := b.request(m[1], r.URL.Query(), content)
		if fault != nil {
			return nil, fault
		}
		return s.call(m[1], request)
	}
	return nil, &Error{http.StatusNotFound, "NOT_FOUND", "Method not found."}
}

// request transcodes an HTTP request, strictly.
func (b binding) request(name string, query url.Values, content []byte) (proto.Message, *Error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(b.method.Input().FullName())
	if err != nil {
		panic(err)
	}
	request := kind.New().Interface()
	switch {
	case b.body == "" && len(content) > 0:
		return nil, invalid("the request has a body")
	case b.body != "":
		text := content
		if b.body != "*" {
			text = fmt.Appendf(nil, `{%q:%s}`, b.body, content)
		}
		if err := protojson.Unmarshal(text, request); err != nil {
			return nil, invalid("Invalid JSON payload received: %v", err)
		}
	}
	for key, values := range query {
		if request.ProtoReflect().Descriptor().Fields().ByJSONName(key) == nil || len(values) != 1 {
			return nil, invalid("Invalid query parameter %q", key)
		}
	}
	if err := runtime.PopulateQueryParameters(request, query, utilities.NewDoubleArray(nil)); err != nil {
		return nil, invalid("Invalid query parameter: %v", err)
	}
	if err := runtime.PopulateFieldFromPath(request, b.variable, name); err != nil {
		return nil, invalid("Invalid path: %v", err)
	}
	return request, behaves(request.ProtoReflect())
}

// behaves holds a request to what its definition says of each field.
func behaves(m protoreflect.Message) *Error {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		behaviours, _ := proto.GetExtension(f.Options(), annotations.E_FieldBehavior).([]annotations.FieldBehavior)
		for _, behaviour := range behaviours {
			switch {
			case behaviour == annotations.FieldBehavior_REQUIRED && !m.Has(f):
				return invalid("%s is required", f.FullName())
			case behaviour == annotations.FieldBehavior_OUTPUT_ONLY && m.Has(f):
				return invalid("%s is for answers only", f.FullName())
			}
		}
		if f.Message() != nil && !f.IsList() && !f.IsMap() && m.Has(f) {
			if err := behaves(m.Get(f).Message()); err != nil {
				return err
			}
		}
	}
	return nil
}
