package files

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bytes removes what a file left in the object store.
type Bytes interface {
	// Purge deletes everything stored for id: what is staged and every sealed copy. It is a success when nothing is
	// there.
	Purge(ctx context.Context, id string) error
	// Remove deletes a sealed object, if it exists.
	Remove(ctx context.Context, object string) error
}

// Cleaner removes the bytes of files that are ended on request at once, in the normal case. What it fails to remove is
// left to the deletion queue, which hears of every end through the table's stream; Failed only reports it.
type Cleaner struct {
	Bytes  Bytes
	Failed func(ctx context.Context, id string, err error)
}

// Clean removes the bytes of f, which has ended.
func (c Cleaner) Clean(ctx context.Context, f File) {
	if err := removeBytes(context.WithoutCancel(ctx), c.Bytes, f); err != nil && c.Failed != nil {
		c.Failed(ctx, f.ID, err)
	}
}

// removeBytes removes what f, which has ended, left behind. Of a verified file that is the one object that its record
// names, so one request does: what is staged, and copies of it that the record does not name, go by their verifier or by the
// next delivery of their event, and should all of that be lost, by Reconciler. Of any other file a verifier may be at
// work: whatever is there goes.
func removeBytes(ctx context.Context, b Bytes, f File) error {
	if f.Sealed == "" {
		return b.Purge(ctx, f.ID)
	}
	return b.Remove(ctx, f.Sealed)
}

// Purger is the consumer of the deletion queue.
type Purger struct {
	Records Finder
	Bytes   Bytes
}

// Purge removes what id left in the object store, see removeBytes, unless the record says that the file is still in use.
func (p *Purger) Purge(ctx context.Context, id string) error {
	if !ValidID(id) {
		return nil
	}
	f, err := p.Records.File(ctx, id)
	if errors.Is(err, ErrFileNotFound) {
		f = File{ID: id, State: Deleted} // nothing tells what there was
	} else if err != nil {
		return fmt.Errorf("reading %s: %w", id, err)
	}
	if f.State.Live() {
		return nil
	}
	if err := removeBytes(ctx, p.Bytes, f); err != nil {
		return fmt.Errorf("purging %s: %w", id, err)
	}
	return nil
}

// DeleteRecords is what Deleter needs of the table.
type DeleteRecords interface {
	Finder
	// End moves before from its state to one of the final states and gives back its quota if it was live, once. When
	// the file isn't in before.State any more: ErrStateChanged.
	End(ctx context.Context, before File, end Ending) (File, error)
}

// Deleter deletes files on request.
type Deleter struct {
	Records DeleteRecords
	Cleaner Cleaner
	Now     func() time.Time
}

// Delete ends id as deleted, whatever its state, and removes its bytes. A repeat succeeds. Without the right to delete
// it is ErrForbidden, for a file that c can't see ErrFileNotFound. Who may delete nothing at all learns from neither
// whether there is such a file.
func (d *Deleter) Delete(ctx context.Context, c Caller, id string) error {
	if !c.Has(FilesDelete) && !c.Has(FilesWrite) {
		return ErrForbidden
	}
	for range verifyAttempts {
		f, err := visible(ctx, d.Records, c, id)
		if err != nil {
			return err
		}
		if !CapabilitiesOf(c, f).Delete {
			return ErrForbidden
		}
		if f.State == Deleted {
			return nil
		}
		ended, err := d.Records.End(ctx, f, Ending{State: Deleted, At: d.Now()})
		if errors.Is(err, ErrStateChanged) {
			continue // it moved on meanwhile; delete what it is now
		}
		if err != nil {
			return fmt.Errorf("deleting %s: %w", id, err)
		}
		d.Cleaner.Clean(ctx, ended)
		return nil
	}
	return fmt.Errorf("%s keeps changing: %w", id, ErrTryAgain)
}
