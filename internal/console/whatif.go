package console

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lullhq/lull/internal/terminal"
)

// Simulator says what other settings would make of a load. It is safe for concurrent use.
type Simulator interface {
	// Settings is the text of the settings that run, as a lull.yaml.
	Settings() string
	// Compare tells its answer line by line. What is wrong with the question is a line too. An error
	// says that the question cannot be answered now. It ends with ctx.
	Compare(ctx context.Context, question []byte, tell func(line any)) error
}

// maxQuestion bounds a question of What if: the settings' text as JSON, and a load.
const maxQuestion = 256 << 10

// GET  /console/whatif   {"settings": the text of the settings that run} POST /console/whatif
// {"settings", "load"}: lines of JSON, until the comparison is done or the request ends
func (c *console) whatifRoutes(mux *http.ServeMux) {
	if c.Simulator == nil {
		return
	}
	c.can["whatif"] = true
	mux.HandleFunc("GET "+prefix+"whatif", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"settings": c.Simulator.Settings()})
	})
	mux.HandleFunc("POST "+prefix+"whatif", c.compare)
}

func (c *console) compare(w http.ResponseWriter, r *http.Request) {
	question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		failed(w, &problem{http.StatusRequestEntityTooLarge, "the settings are too large"})
		return
	}
	ctx, tell, end, err := c.lines(w, r)
	if err != nil {
		failed(w, err)
		return
	}
	defer end()
	if err := c.Simulator.Compare(ctx, question, tell); err != nil && !errors.Is(err, context.Canceled) {
		tell(map[string]string{"error": terminal.Line(err.Error())})
	}
}
