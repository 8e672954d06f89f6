package sniff

import (
	"context"
	"encoding/binary"
	"testing"

	"claimcheck.dev/claimcheck/shared/mediatype"
)

// FuzzCheck holds Check to its contract on any bytes: no panic, a tail that is
// read at most once and for ZIP containers only, unknown types that pass, and a
// detected type that the same bytes pass under.
func FuzzCheck(f *testing.F) {
	for _, fixture := range fixtures(f) {
		if len(fixture.data) <= 6000 {
			f.Add(fixture.data, int64(0), fixture.mediaType)
		}
	}
	f.Add(oleFile(0, []string{"WordDocument"}, []string{"Workbook"}, nil), int64(9000), "application/msword")
	f.Add(ftyp("mif1", "mif1", "heic"), int64(1), "image/heic")
	f.Add(utf16Bytes(binary.LittleEndian, `{"a": 1}`), int64(4095), "application/json")
	f.Add([]byte("<?xml version='1.0'?><!DOCTYPE a [ ]><svg"), int64(3), "text/xml")
	f.Add([]byte("PK\x05\x06PK\x06\x07"), int64(70000), "application/zip")
	f.Add([]byte("junk\n%PDF-1.7\n1 0 obj"), int64(0), "application/pdf")
	f.Fuzz(func(t *testing.T, data []byte, more int64, declared string) {
		size := int64(len(data)) + max(0, min(more, 1<<40))
		head := data[:min(len(data), HeadBytes)]
		check := func(declared string) Result {
			calls := 0
			got, err := Check(context.Background(), declared, head, size, func(_ context.Context, n int64) ([]byte, error) {
				if calls++; calls > 1 || !isZip(head) || n > TailBytes || n > size {
					t.Fatalf("tail call %d for %d of %d bytes starting %q", calls, n, size, head[:min(len(head), 8)])
				}
				return data[max(0, int64(len(data))-n):], nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		got := check(declared)
		if again := check(declared); again != got {
			t.Fatalf("%+v, then %+v", got, again)
		}
		if !check("application/octet-stream").OK {
			t.Fatal("octet-stream refused")
		}
		if got.Detected == "" {
			return
		}
		if canonical, err := mediatype.Parse(got.Detected); err != nil || canonical != got.Detected || mediatype.Base(canonical) == "application/octet-stream" {
			t.Fatalf("detected %q: %v", got.Detected, err)
		}
		if own := check(got.Detected); !own.OK {
			t.Fatalf("detected %q, and refused as that: %+v", got.Detected, own)
		}
	})
}

// FuzzCentralDirectory reads archives whose tail is not that of the head.
func FuzzCentralDirectory(f *testing.F) {
	data := zipFile(f, compressed, contentTypes, types(xlsx+".main+xml"), "xl/workbook.xml", noise(6000))
	f.Add(data[:100], data[len(data)-400:], int64(len(data)))
	f.Add(data[:100], []byte("PK\x06\x06"+string(make([]byte, 52))+"PK\x06\x07"+string(make([]byte, 16))+"PK\x05\x06"+string(make([]byte, 18))), int64(5000))
	f.Fuzz(func(t *testing.T, head, tail []byte, size int64) {
		head = append([]byte(localHeader), head...)
		got, err := Check(context.Background(), "application/zip", head, size, func(context.Context, int64) ([]byte, error) { return tail, nil })
		if err != nil || !got.OK || got.Detected == "" {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	text := make([]byte, 0, HeadBytes)
	for len(text) < HeadBytes {
		text = append(text, "region,amount\nnorth,12\n"...)
	}
	for name, data := range map[string][]byte{
		"pdf":  append([]byte("%PDF-1.7\n"), make([]byte, HeadBytes)...),
		"csv":  text[:HeadBytes],
		"xlsx": zipFile(b, compressed, contentTypes, types(xlsx+".main+xml"), "xl/workbook.xml", noise(9000)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := Check(context.Background(), "application/pdf", data[:HeadBytes], int64(len(data)), func(_ context.Context, n int64) ([]byte, error) {
					return data[max(0, len(data)-int(n)):], nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
