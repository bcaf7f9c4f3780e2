package shared

import (
	"crypto/sha1" //nolint:gosec // by which Redis names scripts
	_ "embed"
	"encoding/hex"
)

// script is a program that runs in Redis.
type script struct{ text, sha string }

var (
	//go:embed take.lua
	takeText string
	//go:embed giveback.lua
	giveBackText string

	take     = newScript(takeText)
	giveBack = newScript(giveBackText)
)

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
