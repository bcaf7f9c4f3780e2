package apis

import (
	"strings"
	"testing"
)

// expressUsers describes the users of express.mjs.
const expressUsers = `apiVersion: admission-gateway.io/v1alpha1
kind: APIResource
metadata: {name: users.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  names: {plural: users, kind: User}
  paths: {collection: /api/v1/users, item: "/api/v1/users/{name}"}
  fields: {name: id}
  schema:
    openAPIV3Schema:
      type: object
      properties:
        id: {type: integer}
        user_name: {type: string, maxLength: 20}
        balance: {type: number, minimum: 0}
        status: {type: string}
`

// TestNodeClients: axios, ky, eventsource and ws get the same answers through the gateway as without it, with what they
// send and get in 50 MB too, and the gateway does not grow by that. With files the same holds for all that the files
// allow, but for the ETags of the objects that they describe.
func TestNodeClients(t *testing.T) {
	dir := nodeDir(t)
	session := func(express, fastify string) (transcript, func(string) string) {
		// What the gateway may edit depends on the encodings that the client takes, which a 304 says of any size.
		vary := strings.NewReplacer(express, "EXPRESS", fastify, "FASTIFY", "Origin, Accept-Encoding", "Origin").Replace
		return runClient(t, dir, "node", "clients.mjs", "http://"+express, "http://"+fastify), vary
	}
	direct, isDirect := session(startExpress(t).address, startFastify(t).address)
	prove := func(t *testing.T, express, fastify *program, without func(a, b transcript) (transcript, transcript)) {
		before := peakMemory(t, express)
		through, isThrough := session(express.address, fastify.address)
		direct, through := without(direct, through)
		proveSameTranscript(t, direct, through, func(s string) string { return isDirect(isThrough(s)) })
		if grown := peakMemory(t, express) - before; grown > moreMemory {
			t.Errorf("the gateway grew by %d MiB", grown>>20)
		}
	}
	t.Run("without-files", func(t *testing.T) {
		prove(t, startGateway(t, startExpress(t).url()), startGateway(t, startFastify(t).url()),
			func(a, b transcript) (transcript, transcript) { return a, b })
	})
	t.Run("with-files", func(t *testing.T) {
		express := startGateway(t, startExpress(t).url(), expressUsers)
		_, fastify := startDescribed(t, "3.0.3")
		prove(t, express, fastify, withoutMadeETags)
		proveExpected(t, express.address, []expected{
			{withJSON("create-invalid", "POST", "/api/v1/users", `{"user_name":"bob","balance":-1}`), 422, "balance"},
			{withJSON("patch-invalid", "PATCH", "/api/v1/users/1", `{"balance":"x"}`), 422, "balance"},
		})
		proveExpected(t, fastify.address,
			[]expected{{withJSON("book-invalid", "POST", "/v1/books", `{"title":""}`), 422, "title"}})
	})
}
