// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/wholefile"
)

// These are the limits of downloads. A zip of a function has about 5 MB, and the program in the zip
// has 12 MB.
const (
	maxSums    = 1 << 20
	maxZip     = 64 << 20
	maxProgram = 64 << 20
	// downloadTimeout is the longest time that the download of one file may take.
	downloadTimeout = 5 * time.Minute
)

// Source says from where to download a release. Several goroutines may use a Source at the same
// time.
type Source struct {
	Version string // such as v0.1.0
	Base    string // https:, http: or file: URL of the folder of all releases; empty for the constant Base
	Sum     string // SHA-256 of the file SHA256SUMS, in hexadecimal; empty for the release of this program
	Cache   string // the folder for downloaded zips; empty for no cache
}

// CacheDir returns a folder for downloaded zips in the cache folder of the user. CacheDir returns
// an empty text if the user has no cache folder.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lull", "releases")
}

var sumPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate checks the fields of the source. Validate sends no request.
func (s Source) Validate() error {
	switch {
	case !IsVersion(s.Version):
		return fmt.Errorf("release %q is not a version such as v0.1.0", s.Version)
	case s.Sum != "" && !sumPattern.MatchString(s.Sum):
		return fmt.Errorf(
			"the checksum of release %s is not a SHA-256: write 64 hexadecimal digits in lower case",
			s.Version,
		)
	case s.Sum == "" && s.Version != Own():
		return fmt.Errorf("the checksum of release %s is not known: give the SHA-256 of its file %s, "+
			"which the release's page shows", s.Version, SumsFile)
	}
	_, err := s.base()
	return err
}

// Program returns the program of a function from the release, for an architecture of Lambda.
func (s Source) Program(ctx context.Context, p names.Program, arch string) ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	name := Zip(s.Version, p, arch)
	want, err := s.sum(ctx, name)
	if err != nil {
		return nil, err
	}
	packed, err := s.file(ctx, name, want, maxZip)
	if err != nil {
		return nil, err
	}
	program, err := programOf(packed)
	if err != nil {
		return nil, fmt.Errorf("read %s of release %s: %w", name, s.Version, err)
	}
	return program, nil
}

// sum returns the SHA-256 that the release names for a file.
func (s Source) sum(ctx context.Context, name string) (string, error) {
	known := make(map[string]string)
	if s.Sum == "" {
		for pair := range strings.SplitSeq(sums, ",") {
			of, sum, _ := strings.Cut(pair, "=")
			known[of] = sum
		}
	} else {
		list, err := s.file(ctx, SumsFile, s.Sum, maxSums)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(list)) {
			if sum, of, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
				known[of] = sum
			}
		}
	}
	if known[name] == "" {
		return "", fmt.Errorf("release %s does not contain %s", s.Version, name)
	}
	return known[name], nil
}

// file returns a file of the release from the cache, or else downloads the file. If the cached file
// does not have the wanted SHA-256, file downloads the file again.
func (s Source) file(ctx context.Context, name, want string, limit int64) ([]byte, error) {
	cached := ""
	if s.Cache != "" {
		cached = filepath.Join(s.Cache, s.Version, name)
		if data, err := os.ReadFile(cached); err == nil && Sum(data) == want {
			return data, nil
		}
	}
	data, err := s.fetch(ctx, name, limit)
	if err != nil {
		return nil, err
	}
	if got := Sum(data); got != want {
		return nil, fmt.Errorf(
			"%s of release %s has the SHA-256 %s, want %s: the file differs from the released one; nothing was stored",
			name,
			s.Version,
			got,
			want,
		)
	}
	if cached != "" {
		// If the file cannot be stored in the cache, the next run downloads the file again. An
		// error of the cache is not a failure.
		_ = store(cached, data)
	}
	return data, nil
}

// store writes a file to the cache.
func store(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return wholefile.Write(path, 0o640, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

func (s Source) base() (*url.URL, error) {
	u, err := url.Parse(cmp.Or(s.Base, Base))
	switch {
	case err != nil:
		return nil, errors.New("the address of the releases cannot be read as a URL")
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
	case u.Scheme == "file" && u.Host == "" && u.Path != "":
	default:
		return nil, fmt.Errorf(
			"the address of the releases, %s, is neither https://HOST/PATH nor file:///FOLDER",
			u.Redacted(),
		)
	}
	return u, nil
}

// fetch downloads one file of the release.
func (s Source) fetch(ctx context.Context, name string, limit int64) ([]byte, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	at := base.JoinPath(s.Version, name)
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	body, err := open(ctx, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: is %s released?", at.Redacted(), s.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", at.Redacted(), err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", at.Redacted(), err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("fetch %s: it is larger than %d bytes", at.Redacted(), limit)
	}
	return data, nil
}

func open(ctx context.Context, at *url.URL) (io.ReadCloser, error) {
	if at.Scheme == "file" {
		path := at.Path
		if runtime.GOOS == "windows" {
			path = strings.TrimPrefix(path, "/") // file:///C:/folder
		}
		return os.Open(filepath.FromSlash(path))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("the address cannot be requested")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		var inner *url.Error // the outer error repeats the address, which may contain a password
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	_ = answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, fs.ErrNotExist
	}
	return nil, errors.New("the server answered " + answer.Status)
}

// programOf returns the program that the zip of a function contains.
func programOf(packed []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return nil, err
	}
	f, err := z.Open(Program)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	program, err := io.ReadAll(io.LimitReader(f, maxProgram+1))
	if err == nil && len(program) > maxProgram {
		err = fmt.Errorf("%s is larger than %d bytes", Program, maxProgram)
	}
	return program, err
}

// Sum returns the SHA-256 of data, in hexadecimal.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
