// SPDX-License-Identifier: Apache-2.0

// Package contract is an HTTP server that accepts the requests that Discovery Engine accepts. It
// uses Google's own definition of the API: package discoveryenginepb, which is generated from the
// definition.
//
// The definition names the paths, the bodies, and the names and types of fields. It also says which
// fields a request must have, and which fields only an answer may have. The server refuses a
// request that does not fit the definition. The behaviour of the methods follows their
// documentation, and was never compared with the real service.
//
// The server is a separate module, so that lull's programs need neither protobuf nor gRPC.
package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	// Missing lists the data stores that do not exist. All other data stores exist.
	Missing []string
	// Structs makes the server return documents as structData, with numbers as doubles.
	Structs bool
	// Token is the token that requests must have. If it is empty, requests need no token.
	Token string

	*runtime.ServeMux
	mu    sync.Mutex
	there map[string]*pb.Document // the documents, by name
}

// New returns a server without documents, with the methods and the paths of the definition.
func New() *Server {
	s := &Server{there: map[string]*pb.Document{}}
	s.ServeMux = runtime.NewServeMux(runtime.WithRoutingErrorHandler(
		func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request,
			_ int,
		) {
			reply(w, nil, &Error{http.StatusNotFound, "NOT_FOUND", "Method not found."})
		}))
	for _, file := range []protoreflect.FileDescriptor{
		pb.File_google_cloud_discoveryengine_v1_document_service_proto,
		pb.File_google_cloud_discoveryengine_v1_search_service_proto,
	} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				rule, _ := proto.GetExtension(methods.Get(j).Options(), annotations.E_Http).(*annotations.HttpRule)
				for _, r := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
					s.bind(methods.Get(j), r)
				}
			}
		}
	}
	return s
}

// An Error is one of Google's canonical errors.
type Error struct {
	HTTP            int
	Status, Message string
}

func (e *Error) Error() string { return e.Status + ": " + e.Message }

func invalid(format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...)}
}

// bind registers a handler for a method, at the paths of one HTTP rule in the method's definition.
func (s *Server) bind(method protoreflect.MethodDescriptor, r *annotations.HttpRule) {
	for verb, path := range map[string]string{
		http.MethodGet: r.GetGet(), http.MethodPatch: r.GetPatch(), http.MethodDelete: r.GetDelete(),
		http.MethodPost: r.GetPost(),
	} {
		if path == "" {
			continue
		}
		err := s.HandlePath(verb, path, func(w http.ResponseWriter, in *http.Request, variables map[string]string) {
			answer, err := s.serve(in, method, r.GetBody(), variables)
			reply(w, answer, err)
		})
		if err != nil {
			panic(err) // the router does not support a path of Google's definition
		}
	}
}

// reply answers as the service would.
func reply(w http.ResponseWriter, answer proto.Message, err *Error) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if err != nil {
		w.WriteHeader(err.HTTP)
		_ = json.NewEncoder(w).Encode(map[string]any{ // fails if the client is gone
			"error": map[string]any{"code": err.HTTP, "message": err.Message, "status": err.Status},
		})
		return
	}
	text, failed := protojson.Marshal(answer)
	if failed != nil {
		panic(failed)
	}
	_, _ = w.Write(text) // fails if the client is gone
}

// serve carries out a request. The path of the request has one variable, which is a name.
func (s *Server) serve(in *http.Request, method protoreflect.MethodDescriptor, body string,
	variables map[string]string,
) (proto.Message, *Error) {
	if s.Token != "" && in.Header.Get("Authorization") != "Bearer "+s.Token {
		const says = "Request had invalid authentication credentials."
		return nil, &Error{http.StatusUnauthorized, "UNAUTHENTICATED", says}
	}
	content, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, invalid("the body cannot be read")
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		panic(err)
	}
	request := kind.New().Interface()
	switch {
	case body == "" && len(content) > 0:
		return nil, invalid("the request has a body")
	case body != "":
		text := content
		if body != "*" {
			text = fmt.Appendf(nil, `{%q:%s}`, body, content)
		}
		if err := protojson.Unmarshal(text, request); err != nil {
			return nil, invalid("Invalid JSON payload received: %v", err)
		}
	}
	query := in.URL.Query()
	for key, values := range query {
		if method.Input().Fields().ByJSONName(key) == nil || len(values) != 1 {
			return nil, invalid("Invalid query parameter %q", key)
		}
	}
	if err := runtime.PopulateQueryParameters(request, query, utilities.NewDoubleArray(nil)); err != nil {
		return nil, invalid("Invalid query parameter: %v", err)
	}
	name := ""
	for field, value := range variables {
		if err := runtime.PopulateFieldFromPath(request, field, value); err != nil {
			return nil, invalid("Invalid path: %v", err)
		}
		name = value
	}
	if fault := behaves(request.ProtoReflect()); fault != nil {
		return nil, fault
	}
	return s.call(name, request)
}

// behaves checks that a request has all required fields, and no field that only answers may have.
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
