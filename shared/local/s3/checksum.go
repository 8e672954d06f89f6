package s3

import (
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3api/middlewares"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// checksum is a full-object checksum in the way S3 writes it.
type checksum struct {
	Algorithm types.ChecksumAlgorithm `json:"algorithm"`
	Value     string                  `json:"value"` // base64
}

// kinds are the algorithms this host computes, in the order S3 looks for them.
var kinds = []types.ChecksumAlgorithm{
	types.ChecksumAlgorithmSha256,
	types.ChecksumAlgorithmCrc32,
	types.ChecksumAlgorithmCrc32c,
	types.ChecksumAlgorithmCrc64nvme,
	types.ChecksumAlgorithmSha1,
}

// sums spreads a checksum over the fields the answers have.
type sums struct{ crc32, crc32c, crc64nvme, sha1, sha256 *string }

func (c checksum) sums() (s sums) {
	if c.Value == "" {
		return s
	}
	switch c.Algorithm {
	case types.ChecksumAlgorithmCrc32:
		s.crc32 = &c.Value
	case types.ChecksumAlgorithmCrc32c:
		s.crc32c = &c.Value
	case types.ChecksumAlgorithmCrc64nvme:
		s.crc64nvme = &c.Value
	case types.ChecksumAlgorithmSha1:
		s.sha1 = &c.Value
	case types.ChecksumAlgorithmSha256:
		s.sha256 = &c.Value
	}
	return s
}

// summer reads an upload through its checksum. At the end of the bytes it
// fails with BadDigest when a declared checksum does not hold.
type summer struct {
	io.Reader
	result func() checksum
}

func newSummer(r io.Reader, algorithm types.ChecksumAlgorithm, declared string) (*summer, error) {
	h, err := utils.NewHashReader(r, declared, utils.HashType(strings.ToLower(string(algorithm))))
	if err != nil {
		return nil, s3err.GetNotImplementedErr("x-amz-checksum-algorithm", "")
	}
	algorithm = types.ChecksumAlgorithm(strings.Clone(string(algorithm)))
	return &summer{h, func() checksum { return checksum{algorithm, h.Sum()} }}, nil
}

// uploadSummer picks the checksum of an upload: the trailing one of a chunked
// upload, the one declared in a header, the one the SDK asks for, or CRC64NVME
// as S3 does when nobody says.
func uploadSummer(in s3response.PutObjectInput) (*summer, error) {
	if t, ok := in.Body.(middlewares.ChecksumReader); ok && t.Algorithm() != "" {
		// The gateway has wrapped the body already; it verifies the trailer.
		return &summer{in.Body, func() checksum {
			return checksum{types.ChecksumAlgorithm(strings.ToUpper(t.Algorithm())), strings.Clone(t.Checksum())}
		}}, nil
	}
	declared := map[types.ChecksumAlgorithm]*string{
		types.ChecksumAlgorithmSha256:    in.ChecksumSHA256,
		types.ChecksumAlgorithmCrc32:     in.ChecksumCRC32,
		types.ChecksumAlgorithmCrc32c:    in.ChecksumCRC32C,
		types.ChecksumAlgorithmCrc64nvme: in.ChecksumCRC64NVME,
		types.ChecksumAlgorithmSha1:      in.ChecksumSHA1,
	}
	for _, kind := range kinds {
		if value := declared[kind]; value != nil {
			return newSummer(in.Body, kind, *value)
		}
	}
	algorithm := in.ChecksumAlgorithm
	if algorithm == "" {
		algorithm = types.ChecksumAlgorithmCrc64nvme
	}
	return newSummer(in.Body, algorithm, "")
}
