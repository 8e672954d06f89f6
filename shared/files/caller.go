package files

import "slices"

// Scope is a permission of a key.
type Scope string

const (
	FilesRead    Scope = "files:read"
	FilesWrite   Scope = "files:write"
	FilesDelete  Scope = "files:delete"
	KeysManage   Scope = "keys:manage"
	AgentsManage Scope = "agents:manage"
	CallsWrite   Scope = "calls:write"
	RunsRead     Scope = "runs:read"
	RunsWrite    Scope = "runs:write"
)

// Scopes lists every scope.
var Scopes = []Scope{FilesRead, FilesWrite, FilesDelete, KeysManage, AgentsManage, CallsWrite, RunsRead, RunsWrite}

// Caller is on whose behalf a request acts, as the credentials say.
type Caller struct {
	Account string // the effective account: files and quotas are counted there
	Actor   string
	Scopes  []Scope
	KeyID   string
}

// Has reports whether the caller holds scope s.
func (c Caller) Has(s Scope) bool { return slices.Contains(c.Scopes, s) }

// Capabilities is what a caller may do with one file.
type Capabilities struct {
	Visible  bool // knows that the file exists
	Download bool
	Claim    bool // lease it for one use; the link that comes with the lease needs no other right
	Preview  bool
	Delete   bool
	Keep     bool // clear the expiry of a run file
	Upload   bool // finish or renew the upload: its creator only
}

// CapabilitiesOf is the one place that decides what c may do with f; every exit asks it. A file that isn't Visible
// must be answered like one that never existed.
func CapabilitiesOf(c Caller, f File) Capabilities {
	creator := c.Account == f.Account && c.Actor == f.Actor
	var visible bool
	switch f.Purpose {
	case Upload:
		visible = c.Account == f.Account
	case UserUpload:
		visible = creator
	}
	// agent_output follows its run and fixture follows a mandate; without either nobody sees them.
	if !visible {
		return Capabilities{}
	}
	read := c.Has(FilesRead)
	return Capabilities{
		Visible:  true,
		Download: read,
		Claim:    c.Has(FilesWrite),
		Preview:  read,
		Delete:   c.Has(FilesDelete) || creator && c.Has(FilesWrite),
		Keep:     f.Run != "" && c.Has(RunsWrite),
		Upload:   creator && c.Has(FilesWrite),
	}
}
