package ground

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
)

// upload puts a stack's assets where its template expects them, and returns the address of the
// template, which is one of them.
func (g *Ground) upload(ctx context.Context, out, stack string) (template string, err error) {
	text, err := os.ReadFile(filepath.Join(out, stack+".assets.json"))
	if err != nil {
		return "", fmt.Errorf("read the list of assets: %w", err)
	}
	var list struct {
		Files map[string]struct {
			Source       struct{ Path, Packaging string }
			Destinations map[string]struct{ BucketName, ObjectKey string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", fmt.Errorf("read the list of assets: %w", err)
	}
	client := sdk.NewFromConfig(g.Account, func(o *sdk.Options) { o.UsePathStyle = true })
	for _, file := range list.Files {
		body, err := os.ReadFile(filepath.Join(out, file.Source.Path))
		if file.Source.Packaging == "zip" {
			body, err = pack(filepath.Join(out, file.Source.Path))
		}
		if err != nil {
			return "", fmt.Errorf("read asset %s: %w", file.Source.Path, err)
		}
		for _, to := range file.Destinations {
			_, made := client.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: &to.BucketName}) // for the first of them
			_, err := client.PutObject(ctx, &sdk.PutObjectInput{
				Bucket: &to.BucketName, Key: &to.ObjectKey,
				Body: bytes.NewReader(body),
			})
			if err != nil {
				return "", fmt.Errorf("upload asset %s: %w", file.Source.Path, errors.Join(err, made))
			}
			if strings.HasSuffix(file.Source.Path, ".template.json") {
				template = aws.ToString(g.Account.BaseEndpoint) + "/" + to.BucketName + "/" + to.ObjectKey
			}
		}
	}
	return template, nil
}

// pack zips a folder.
func pack(dir string) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()) // the directory at its end comes with Close
	return out.Bytes(), err
}
