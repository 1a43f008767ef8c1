package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"time"
)

// entry is one file of an archive.
type entry struct {
	name string // in the archive, with slashes
	path string // on the disk
	mode fs.FileMode
}

// tarred is a .tar.gz of files, in their order, all with one time and without owners.
func tarred(at time.Time, files []entry) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	err = each(files, func(f entry, data []byte) error {
		err := t.WriteHeader(&tar.Header{
			Name: f.name, Mode: int64(f.mode), Size: int64(len(data)), ModTime: at, Format: tar.FormatUSTAR,
		})
		if err == nil {
			_, err = t.Write(data)
		}
		return err
	})
	err = errors.Join(err, t.Close(), z.Close())
	return out.Bytes(), err
}

// zipped is a .zip of files, in their order, all with one time.
func zipped(at time.Time, files []entry) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	err := each(files, func(f entry, data []byte) error {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		w, err := z.CreateHeader(header)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// each reads files, and packs one after the other.
func each(files []entry, pack func(f entry, data []byte) error) error {
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if err == nil {
			err = pack(f, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
