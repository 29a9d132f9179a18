// go_upload URL - send 10 MiB without Expect, print the status and the body of the answer.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	body := bytes.NewReader(make([]byte, 10<<20))
	reply, err := http.Post(os.Args[1], "application/json", body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d %s\n", reply.StatusCode, text)
}
