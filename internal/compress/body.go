package compress

import "github.com/valyala/fasthttp"

// Append appends the bytes of an answer, encoded. It reports false if that saves nothing, or if too many answers are
// being encoded: fasthttp encodes as many at a time as there are processors.
func Append(dst, src []byte, c Coding) ([]byte, bool) {
	start := len(dst)
	switch c {
	case Gzip:
		dst = fasthttp.AppendGzipBytesLevel(dst, src, fasthttp.CompressBestSpeed)
	case Brotli:
		dst = fasthttp.AppendBrotliBytesLevel(dst, src, fasthttp.CompressBrotliDefaultCompression)
	case Zstd:
		dst = fasthttp.AppendZstdBytesLevel(dst, src, fasthttp.CompressZstdBestSpeed)
	}
	n := len(dst) - start
	return dst, n > 0 && n < len(src) // fasthttp appends nothing if its queue is full
}
