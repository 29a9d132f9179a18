// check.go - Go's own sumdb/note and sumdb/tlog over a directory that ron exported. Only maps tile
// paths and reads the body of a C2SP checkpoint; every check is Go's. usage: check DIR
package main

import ("bufio"; "encoding/hex"; "fmt"; "os"; "strconv"; "strings"
	"golang.org/x/mod/sumdb/note"; "golang.org/x/mod/sumdb/tlog")

type files struct{ dir string }

func (files) Height() int { return 8 }
func (files) SaveTiles([]tlog.Tile, [][]byte) {}
func (f files) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, t := range tiles {
		data, err := os.ReadFile(f.dir + "/" + strings.Replace(t.Path(), "tile/8/", "tile/", 1))
		if err != nil { return nil, err }
		all = append(all, data)
	}
	return all, nil
}
func must(err error) { if err != nil { fmt.Println("# Go:", err); os.Exit(1) } }
func refuse(err error) { if err == nil { must(fmt.Errorf("a tampered proof was accepted")) } }
func number(s string) int64 { n, err := strconv.ParseInt(s, 10, 64); must(err); return n }
func hash(s string) (h tlog.Hash) { b, err := hex.DecodeString(s); must(err); copy(h[:], b); return }

func main() {
	vkey, err := os.ReadFile(os.Args[1] + "/vkey"); must(err)
	text, err := os.ReadFile(os.Args[1] + "/log/checkpoint"); must(err)
	verifier, err := note.NewVerifier(string(vkey)); must(err)
	opened, err := note.Open(text, note.VerifierList(verifier)); must(err)
	body := strings.Split(opened.Text, "\n") // origin, size, root
	root, err := tlog.ParseHash(body[2]); must(err)
	tree := tlog.Tree{N: number(body[1]), Hash: root}
	reader := tlog.TileHashReader(tree, files{os.Args[1] + "/log"})
	file, err := os.Open(os.Args[1] + "/proofs"); must(err)
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		f := strings.Fields(lines.Text())
		size, top, n, leaf, proof := number(f[1]), hash(f[2]), number(f[3]), hash(f[4]), []tlog.Hash{}
		for _, h := range f[5:] { proof = append(proof, hash(h)) }
		check, own, longer := error(nil), []tlog.Hash(nil), append(append([]tlog.Hash{}, proof...), top)
		bad := append(append([]tlog.Hash{}, proof...), top)[:len(proof)]
		if len(bad) > 0 { bad[count%len(bad)][count%32] ^= 1 }
		if f[0] == "inclusion" {
			p, err := tlog.ProveRecord(size, n, reader); must(err)
			own, check = p, tlog.CheckRecord(proof, size, top, n, leaf)
			refuse(tlog.CheckRecord(longer, size, top, n, leaf))
			if len(bad) > 0 { refuse(tlog.CheckRecord(bad, size, top, n, leaf)) }
		} else {
			p, err := tlog.ProveTree(size, n, reader); must(err)
			own, check = p, tlog.CheckTree(proof, size, top, n, leaf)
			refuse(tlog.CheckTree(longer, size, top, n, leaf))
			if len(bad) > 0 { refuse(tlog.CheckTree(bad, size, top, n, leaf)) }
		}
		must(check)
		if fmt.Sprint(own) != fmt.Sprint(proof) { must(fmt.Errorf("another proof: %s", lines.Text())) }
	}
	fmt.Printf("# Go: %s, %d leaves, %d proofs\n", opened.Sigs[0].Name, tree.N, count)
}
