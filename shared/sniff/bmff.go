package sniff

import (
	"encoding/binary"
	"strings"
)

// ISO base media files (MP4, QuickTime, HEIF ...) are told apart by the class of
// their brands: still images, or audio and video. Within a class every type
// agrees with every other, because the brand says how a file was written more
// than what is in it: cameras put video in "qt  ", phones HEIC in "mif1".

// isBMFF reports whether head opens with a box that starts such a file: ftyp or
// styp, or one of those that older QuickTime files start with.
func isBMFF(head []byte) bool {
	if len(head) < 8 {
		return false
	}
	size := binary.BigEndian.Uint32(head)
	switch string(head[4:8]) {
	case "ftyp", "styp":
		// These boxes are small: text with "ftyp" in fifth place is none.
		return len(head) >= 12 && head[0] == 0
	case "moov", "mdat", "wide", "free", "skip", "pnot":
		// Sizes from 8 bytes; 1 announces a 64-bit size and 0 the rest of the
		// file. Letters make sizes above 512 MiB.
		return (size >= 8 || size <= 1) && head[0] < 0x20
	}
	return false
}

// detectBMFF classifies a file that isBMFF.
func detectBMFF(head []byte) finding {
	if box := string(head[4:8]); box != "ftyp" && box != "styp" {
		return binaryFinding("video/quicktime")
	}
	major := string(head[8:12])
	compatible := brandList(head)
	switch major {
	case "crx ":
		return binaryFinding("image/x-canon-cr3")
	case "jp2 ", "jpx ", "jpm ":
		return binaryFinding("image/" + major[:3])
	case "jxl ":
		return binaryFinding("image/jxl")
	}
	if still := stillKind(major); still != "" {
		if still == "image/heif" {
			// mif1 and its like only say "an image"; the list says which.
			for _, brand := range compatible {
				if kind := stillKind(brand); kind == "image/heic" || kind == "image/avif" {
					still = kind
					break
				}
			}
		}
		return binaryFinding(still)
	}
	found := binaryFinding(avKind(major))
	if isGenericBrand(major) {
		for _, brand := range compatible {
			if stillKind(brand) != "" {
				// A generic major brand over an image brand is either.
				found.also = []string{"heif"}
				break
			}
		}
	}
	return found
}

// brandList returns the compatible brands of the ftyp box that lie in head.
func brandList(head []byte) []string {
	end := len(head)
	if size := binary.BigEndian.Uint32(head); size >= 16 && int64(size) < int64(end) {
		end = int(size)
	}
	var brands []string
	for at := 16; at+4 <= end && len(brands) < 64; at += 4 {
		brands = append(brands, string(head[at:at+4]))
	}
	return brands
}

// stillKind returns the image type of a brand of HEIF (ISO/IEC 23008-12) or
// AVIF, "" for other brands.
func stillKind(brand string) string {
	switch brand {
	case "heic", "heix", "heim", "heis":
		return "image/heic"
	case "hevc", "hevx", "hevm", "hevs":
		return "image/heic-sequence"
	case "avif", "avis", "avio":
		return "image/avif"
	case "mif1", "mif2", "mif3", "miaf", "avci", "avic", "jpeg", "j2ki", "vvic", "evbi":
		return "image/heif"
	case "msf1", "avcs", "jpgs", "j2is", "vvis":
		return "image/heif-sequence"
	}
	return ""
}

func isGenericBrand(brand string) bool {
	return strings.HasPrefix(brand, "iso") || brand == "mp41" || brand == "mp42"
}

// avKind names the audio or video type of a major brand.
func avKind(brand string) string {
	switch brand {
	case "qt  ", "mqt ":
		return "video/quicktime"
	case "M4A ":
		return "audio/x-m4a"
	case "M4B ", "M4P ", "F4A ", "F4B ":
		return "audio/mp4"
	case "M4V ", "M4VH", "M4VP":
		return "video/x-m4v"
	case "mj2s", "mjp2":
		return "video/mj2"
	}
	switch brand[:3] {
	case "3gp", "3gs", "3ge", "3gg", "3gr", "3gt":
		return "video/3gpp"
	case "3g2":
		return "video/3gpp2"
	}
	return "video/mp4"
}
