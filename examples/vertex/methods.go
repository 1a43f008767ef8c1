// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pb "cloud.google.com/go/discoveryengine/apiv1/discoveryenginepb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// call carries out a request about the name of a document, or of a branch or data store.
func (s *Server) call(name string, request proto.Message) (proto.Message, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.exists(name); err != nil {
		return nil, err
	}
	document := s.there[name]
	switch r := request.(type) {
	case *pb.UpdateDocumentRequest:
		return s.update(r)
	case *pb.ListDocumentsRequest:
		return s.list(r)
	case *pb.SearchRequest:
		return s.search(r)
	case *pb.GetDocumentRequest:
		if document != nil {
			return s.shown(document), nil
		}
		return nil, missing(name)
	case *pb.DeleteDocumentRequest:
		if delete(s.there, name); document != nil {
			return &emptypb.Empty{}, nil
		}
		return nil, missing(name)
	}
	return nil, &Error{http.StatusNotImplemented, "UNIMPLEMENTED", string(request.ProtoReflect().Descriptor().Name())}
}

func missing(name string) *Error {
	return &Error{http.StatusNotFound, "NOT_FOUND", "Document " + name + " not found."}
}

// exists returns an error if the data store in a name does not exist.
func (s *Server) exists(name string) *Error {
	_, rest, _ := strings.Cut(name, "/dataStores/")
	id, _, _ := strings.Cut(rest, "/")
	if slices.Contains(s.Missing, id) {
		return &Error{http.StatusNotFound, "NOT_FOUND", "DataStore " + name + " not found."}
	}
	return nil
}

// label matches a name of RFC 1034. Since RFC 1123, such a name may also begin with a digit.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (s *Server) update(r *pb.UpdateDocumentRequest) (proto.Message, *Error) {
	d, _ := proto.Clone(r.GetDocument()).(*pb.Document)
	id := d.GetName()[strings.LastIndexByte(d.GetName(), '/')+1:]
	var object map[string]json.RawMessage
	_, isJSON := d.GetData().(*pb.Document_JsonData)
	switch {
	case len(d.GetName()) > 1024, !label.MatchString(id):
		return nil, invalid("the id %q is not a name of RFC 1034 with at most 63 characters", id)
	case d.GetId() != "" && d.GetId() != id:
		return nil, invalid("the id %q is not that of the name", d.GetId())
	case d.GetData() == nil:
		return nil, invalid("one of struct_data or json_data should be provided")
	case isJSON && json.Unmarshal([]byte(d.GetJsonData()), &object) != nil:
		return nil, invalid("json_data is not an object")
	case len(r.GetUpdateMask().GetPaths()) > 0:
		return nil, &Error{http.StatusNotImplemented, "UNIMPLEMENTED", "update_mask"}
	case s.there[d.GetName()] == nil && !r.GetAllowMissing():
		return nil, missing(d.GetName())
	}
	d.Id = id
	s.there[d.GetName()] = d
	return s.shown(d), nil
}

// shown returns a document in the form of an answer.
func (s *Server) shown(d *pb.Document) *pb.Document {
	shown, _ := proto.Clone(d).(*pb.Document)
	if !s.Structs || shown.GetJsonData() == "" {
		return shown
	}
	data := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(shown.GetJsonData()), data); err != nil {
		panic(err) // cannot happen: the data was checked when it was written
	}
	shown.Data = &pb.Document_StructData{StructData: data}
	return shown
}

// under returns the documents below a name, in an order that looks random.
func (s *Server) under(parent string) []*pb.Document {
	var all []*pb.Document
	order := func(d *pb.Document) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(d.GetName())) // a hash never returns an error
		return h.Sum64()
	}
	for name, d := range s.there {
		if strings.HasPrefix(name, parent+"/") {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *pb.Document) int { return cmp.Compare(order(a), order(b)) })
	return all
}

func (s *Server) list(r *pb.ListDocumentsRequest) (proto.Message, *Error) {
	size := int(cmp.Or(min(r.GetPageSize(), 1000), 100))
	from := 0
	if token := r.GetPageToken(); token != "" {
		at, err := strconv.Atoi(token)
		if err != nil {
			return nil, invalid("page_token")
		}
		from = at
	}
	if size < 0 {
		return nil, invalid("page_size is negative")
	}
	all := s.under(r.GetParent())
	all = all[min(from, len(all)):]
	answer := &pb.ListDocumentsResponse{}
	for _, d := range all[:min(size, len(all))] {
		answer.Documents = append(answer.Documents, s.shown(d))
	}
	if len(all) > size {
		answer.NextPageToken = strconv.Itoa(from + size)
	}
	return answer, nil
}

// search finds the documents whose text has every word of the query. The real service also finds
// other documents.
func (s *Server) search(r *pb.SearchRequest) (proto.Message, *Error) {
	store, config, _ := strings.Cut(r.GetServingConfig(), "/servingConfigs/")
	if config != "default_search" {
		return nil, missing(r.GetServingConfig())
	}
	answer := &pb.SearchResponse{}
	for _, d := range s.under(store) {
		found := true
		for _, word := range strings.Fields(strings.ToLower(r.GetQuery())) {
			found = found && strings.Contains(strings.ToLower(d.GetJsonData()), word)
		}
		if found && len(answer.GetResults()) < int(r.GetPageSize()) {
			hit := &pb.SearchResponse_SearchResult{Id: d.GetId(), Document: s.shown(d)}
			answer.Results = append(answer.Results, hit)
		}
	}
	return answer, nil
}
