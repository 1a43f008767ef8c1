package dev

import (
	"context"

	"github.com/lullhq/lull/internal/letter"
	"github.com/lullhq/lull/internal/queue"
)

func (e *Engine) letters(ctx context.Context, p *pipe, batch []queue.Message) ([]string, error) {
	for _, m := range batch {
		l, err := letter.Read(m)
		if err != nil {
			return nil, err
		}
		if _, err := e.Letters.Park(ctx, l); err != nil {
			return nil, err
		}
	}
	return []string{}, nil
}

func (e *Engine) pruning(ctx context.Context, p *pipe) {}
