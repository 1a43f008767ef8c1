// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// templates is an OpenSearch that keeps the index templates that it is given.
type templates struct {
	sync.Mutex

	put []string
}

func (s *templates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPut {
		s.Lock()
		s.put = append(s.put, string(body))
		s.Unlock()
	}
	_, _ = io.WriteString(w, `{"version":{"number":"2.19.3"}}`)
}

func (s *templates) start(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *templates) got(t *testing.T, names ...string) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	if len(names) == 0 && len(s.put) == 0 {
		return
	}
	want := `"index_patterns":["` + strings.Join(names, `","`) + `"]`
	if len(s.put) != 1 || len(names) == 0 || !strings.Contains(s.put[0], want) {
		t.Errorf("the engine was given %q, want one template with %s", s.put, want)
	}
}

func TestDevPreparesASinkOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	var unasked, asked templates
	at := unasked.start(t)
	lull(t, "", "dev", "--sink", at, "--events", write(t), "--exit-when-idle").
		want(t, "dev --sink", exitOK, "sink search was not prepared: only an engine with index templates needs that",
			"--install-template prepares it")
	unasked.got(t)
	lull(t, "", "dev", "--sink", asked.start(t), "--install-template", "--events", write(t), "--exit-when-idle").
		want(t, "dev --sink --install-template", exitOK)
	asked.got(t, "lull-content")
}

func TestInstallTemplatePreparesTheCollectionsOfTheSettings(t *testing.T) {
	t.Parallel()
	const listed = "collections: {news: {}, people: {}}\n"
	for name, c := range map[string]struct {
		collections string
		args        []string
		code        exitCode
		says        string
		covers      []string
	}{
		"a list":                {listed, nil, exitOK, "sink search is prepared for news, people", []string{"k-news", "k-people"}},
		"no list":               {"", nil, exitOK, "prepared for content", []string{"k-content"}},
		"no list, and another":  {"", []string{"--collection", "news"}, exitOK, "for content, news", []string{"k-content", "k-news"}},
		"a list, and another":   {listed, []string{"--collection", "x"}, exitUsage, "add it there", nil},
		"a name that is none":   {"", []string{"--collection", "A*"}, exitUsage, "--collection", nil},
		"printed, and not sent": {listed, []string{"--print"}, exitOK, "PUT /_index_template/lull-search", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var engine templates
			settings := write(t, c.collections+"sinks: {search: {kind: opensearch, index: 'k-{collection}', url: '"+
				engine.start(t)+"'}}")
			lull(t, "", append([]string{"index", "install-template", "--config", settings}, c.args...)...).want(t, "install-template", c.code, c.says)
			engine.got(t, c.covers...)
		})
	}
}
