// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v4/opensearchutil"
)

func external(ctx context.Context, url string, workers int, events <-chan event) error {
	return bulk(ctx, url, workers, events, true)
}

func plain(ctx context.Context, url string, workers int, events <-chan event) error {
	return bulk(ctx, url, workers, events, false)
}

// bulk writes with the bulk indexer, which has its own default for the size of a request.
func bulk(ctx context.Context, url string, workers int, events <-chan event, versions bool) error {
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{url}}})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error // the first error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = err
		}
	}
	to, err := opensearchutil.NewBulkIndexer(opensearchutil.BulkIndexerConfig{
		Client: client, Index: target, NumWorkers: workers,
		OnError: func(_ context.Context, err error) { fail(err) },
	})
	if err != nil {
		return err
	}
	refused := func(_ context.Context, it opensearchutil.BulkIndexerItem, answer opensearchapi.BulkRespItem, err error) {
		switch {
		case answer.Status == http.StatusConflict && versions: // a newer document is there
		case err != nil:
			fail(fmt.Errorf("document %s: %w", it.DocumentID, err))
		default:
			fail(fmt.Errorf("document %s: status %d", it.DocumentID, answer.Status))
		}
	}
	kind := "external_gte"
	for e := range events {
		it := opensearchutil.BulkIndexerItem{
			Action: "index", DocumentID: e.Subject, Body: bytes.NewReader(e.Data), OnFailure: refused,
		}
		if versions {
			it.Version, it.VersionType = &e.version, &kind
		}
		if err := to.Add(ctx, it); err != nil {
			return err
		}
	}
	err = to.Close(ctx)
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}
