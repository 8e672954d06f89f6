package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	local "claimcheck.dev/claimcheck/shared/local/template"
)

// copyProject copies the files that git tracks, as they are now: a file that was forgotten
// in a commit is missing here as it would be in a clone. Without git it copies everything
// that is no output.
func (w *world) copyProject(ctx context.Context) (string, error) {
	var files []string
	if _, err := os.Stat(filepath.Join(w.root, ".git")); err == nil {
		// A checkout may belong to another user than the one who runs this.
		out, err := w.command(ctx, w.root, "git", "-c", "safe.directory="+w.root, "ls-files", "-z").Output()
		if err != nil {
			return "", fmt.Errorf("asking git for its files: %w", err)
		}
		files = strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 })
	} else {
		err := filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && path != w.root && strings.HasPrefix(e.Name(), ".") {
				return filepath.SkipDir
			}
			if err == nil && e.Type().IsRegular() {
				files = append(files, strings.TrimPrefix(path, w.root+"/"))
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("listing the project: %w", err)
		}
	}
	for _, name := range files {
		from, to := filepath.Join(w.root, name), filepath.Join(w.copy, name)
		text, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, but not in a commit yet
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o700)
		}
		if err != nil {
			return "", fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return fmt.Sprintf("%d files", len(files)), nil
}

func (w *world) sam(ctx context.Context, args ...string) error {
	_, err := output(w.command(ctx, w.copy, filepath.Join(w.venv, "bin", "sam"), args...))
	return err
}

func (w *world) validate(ctx context.Context) (string, error) {
	return "the template is valid SAM", w.sam(ctx, "validate", "--lint")
}

// build builds twice, with sam and with make, and compares.
func (w *world) build(ctx context.Context) (string, error) {
	if err := w.sam(ctx, "build"); err != nil {
		return "", err
	}
	built, err := w.compare(ctx)
	if err != nil {
		return "", err
	}
	size := 0
	for function, binary := range built {
		if err := shippable(binary); err != nil {
			return "", fmt.Errorf("%s: %w", function, err)
		}
		size += len(binary)
	}
	return fmt.Sprintf("%d functions, arm64, each the bytes of make build, %d MB in all", len(built), size>>20), nil
}

// edited is a file that changes what every function does, in the package that all of them import.
const (
	edited = "shared/files/edited.go"
	edit   = "package files\n\nimport \"os\"\n\nfunc init() {\n\tif os.Getenv(\"EDITED\") == %q {\n\t\tos.Exit(1)\n\t}\n}\n"
)

// rebuild edits the copy and builds again: with the settings of samconfig.toml, and for
// one function with --cached too, which somebody may well say.
func (w *world) rebuild(ctx context.Context) (string, error) {
	before, err := w.built()
	if err != nil {
		return "", err
	}
	change := func(text string) error {
		return os.WriteFile(filepath.Join(w.copy, edited), fmt.Appendf(nil, edit, text), 0o600)
	}
	if err := change("once"); err != nil {
		return "", err
	}
	if err := w.sam(ctx, "build"); err != nil {
		return "", err
	}
	after, err := w.compare(ctx)
	if err != nil {
		return "", fmt.Errorf("after an edit of %s: %w", edited, err)
	}
	for function := range before {
		if bytes.Equal(before[function], after[function]) {
			return "", fmt.Errorf("%s is the same after an edit of %s: it is stale, or does not import that package and the test needs another", function, edited)
		}
	}

	const sample = "HealthFunction"
	last := after[sample]
	for _, text := range []string{"twice", "thrice"} {
		if err := change(text); err != nil {
			return "", err
		}
		if err := w.sam(ctx, "build", "--cached", sample); err != nil {
			return "", err
		}
		binary, err := os.ReadFile(w.artifact(sample))
		if err != nil {
			return "", err
		}
		if bytes.Equal(binary, last) {
			return "", fmt.Errorf("%s: sam build --cached ships what was built before an edit of %s", sample, edited)
		}
		last = binary
	}
	if err := os.Remove(filepath.Join(w.copy, edited)); err != nil {
		return "", err
	}
	return fmt.Sprintf("all %d functions follow it, with --cached too", len(after)), w.sam(ctx, "build", sample)
}

// compare runs `make build` and holds what sam built against it, byte for byte.
func (w *world) compare(ctx context.Context) (map[string][]byte, error) {
	if _, err := output(w.command(ctx, w.copy, "make", "build")); err != nil {
		return nil, err
	}
	built, err := w.built()
	if err != nil {
		return nil, err
	}
	folders, err := os.ReadDir(filepath.Join(w.copy, "functions"))
	if err != nil {
		return nil, err
	}
	if len(built) != len(folders) {
		return nil, fmt.Errorf("sam build made %d functions, functions/ has %d folders", len(built), len(folders))
	}
	for function, binary := range built {
		made, err := os.ReadFile(filepath.Join(w.copy, ".local", "build", local.FolderOf(function), "bootstrap"))
		if err != nil {
			return nil, fmt.Errorf("make build made no %s: %w", function, err)
		}
		if !bytes.Equal(binary, made) {
			return nil, fmt.Errorf("%s: sam build and make build differ", function)
		}
	}
	return built, nil
}

// artifact is the path of what sam built for a function.
func (w *world) artifact(function string) string {
	return filepath.Join(w.copy, ".aws-sam", "build", function, "bootstrap")
}

// built reads the binaries that sam built, by logical id.
func (w *world) built() (map[string][]byte, error) {
	paths, err := filepath.Glob(w.artifact("*"))
	if err != nil || len(paths) == 0 {
		return nil, errors.New("sam build made nothing in .aws-sam/build")
	}
	out := map[string][]byte{}
	for _, path := range paths {
		folder := filepath.Dir(path)
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		if len(entries) != 1 {
			return nil, fmt.Errorf("%s ships more than its bootstrap", filepath.Base(folder))
		}
		if out[filepath.Base(folder)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// shippable says what is wrong with a bootstrap: it must run by itself on arm64.
func shippable(binary []byte) error {
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("the bootstrap is no ELF file: %w", err)
	}
	if file.Machine != elf.EM_AARCH64 || file.Class != elf.ELFCLASS64 {
		return fmt.Errorf("the bootstrap is for %s %s, want arm64", file.Machine, file.Class)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return errors.New("the bootstrap needs a loader: it is not static")
	}
	if file.Section(".debug_info") != nil || file.Section(".symtab") != nil {
		return errors.New("the bootstrap has symbols: it was not built with -s -w")
	}
	return nil
}
