package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"varve"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/dirbucket"
	"varve/tiers/s3"
)

// logTiers are the tiers of a configuration beyond the local disk, for one log.
type logTiers struct {
	*coldTier
	warm *warmTier
}

// openTiers makes the tiers of a configuration ready for the log in a directory.
func (s *tierSettings) openTiers(ctx context.Context, out *streams, dir string, use access) (*logTiers, error) {
	slow := time.AfterFunc(slowCheck, func() { out.note("varve: a tier has not answered yet; waiting for it up to %v", checkTimeout) })
	defer slow.Stop()
	t := &logTiers{}
	if p := placeInNode(dir); p != nil && p.topic == "" { // a catalogue is on the disk alone
		return &logTiers{coldTier: &coldTier{close: func() {}}, warm: &warmTier{}}, nil
	}
	var err error
	if t.warm, err = s.openWarm(ctx, dir, use); err != nil {
		return nil, err
	}
	if t.coldTier, err = s.openCold(ctx, dir, use); err != nil {
		return nil, err
	}
	return t, nil
}

// inspect returns what a look at the log needs.
func (t *logTiers) inspect(out *streams) varve.InspectOptions {
	return varve.InspectOptions{Cold: t.bucket, ColdPrefix: t.prefix, Warm: t.warm.options, Logger: slog.New(warner{out})}
}

// coldTier is the bucket of a configuration, and where a log is in it. Without a cold tier the bucket
// is nil.
type coldTier struct {
	bucket tiers.Bucket
	kind   string // as the map of the tiers names it
	place  string // of the log, in messages
	prefix string // of the log's keys; ends in a slash
	down   error  // it did not answer just now
	close  func()
}

// access is what a command does with the bucket.
type access uint8

const (
	looks  access = iota // nothing is written to it
	writes               // it is checked first, unless it does not answer
	makes                // and made, if it is a directory and absent
)

// slowCheck is after how long that is worth a line.
const slowCheck = 5 * time.Second

// checkTimeout bounds the check of a bucket before anything is done with it.
const checkTimeout = 10 * time.Second

// cold makes the cold tier of a configuration ready for the log in a directory.
func (s *tierSettings) openCold(ctx context.Context, dir string, use access) (*coldTier, error) {
	if !s.cold() {
		return &coldTier{close: func() {}}, nil
	}
	prefix, err := s.logPrefix(dir)
	if err == nil {
		err = s.apart(dir, use)
	}
	if err != nil {
		return nil, err
	}
	t, err := s.openBucket(ctx, use)
	if err != nil {
		return nil, err
	}
	if t.kind == "bucket" { // some names are its own
		if _, err := t.bucket.Head(ctx, prefix+manifest.ManifestKey); errors.Is(err, tiers.ErrInvalid) {
			t.close()
			return nil, nameError(strings.TrimSuffix(prefix, "/"), err)
		}
	}
	t.prefix = prefix
	t.place = strings.TrimSuffix(s.ColdURL, "/") + "/" + strings.TrimSuffix(prefix, "/")
	return t, nil
}

// apart refuses a bucket in the directory of the log, or around it: they would take each other's files for
// their own. The file system of a bucket that is made has to answer; any other may hang, and is not asked.
func (s *tierSettings) apart(dir string, use access) error {
	u, err := url.Parse(s.ColdURL)
	if err != nil || u.Scheme != "file" || dir == "" {
		return err // Validate has parsed it
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	bucket := filepath.Clean(u.Path)
	if use == makes {
		dir, bucket = resolved(dir), resolved(bucket)
	}
	if within(dir, bucket) || within(bucket, dir) {
		return usageError{fmt.Errorf("cold.url: the bucket %s and the log %s share a directory: give the bucket one of its own", bucket, dir)}
	}
	return nil
}

// within reports whether a path is another one, or lies below it.
func within(path, above string) bool {
	rel, err := filepath.Rel(above, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// resolved returns a path without the links in what is there of it.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if up := filepath.Dir(path); up != path {
		return filepath.Join(resolved(up), filepath.Base(path))
	}
	return path
}

// openBucket makes the bucket ready.
func (s *tierSettings) openBucket(ctx context.Context, use access) (*coldTier, error) {
	u, err := url.Parse(s.ColdURL)
	if err != nil {
		return nil, err // Validate has parsed it
	}
	if u.Scheme == "file" {
		return s.openDirectory(ctx, u.Path, use)
	}
	o, err := s.s3Options()
	if err != nil {
		return nil, fmt.Errorf("cold.url: %w", err)
	}
	b, err := s3.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cold.url: %w", err)
	}
	t := &coldTier{bucket: b, kind: "S3", place: s.ColdURL, close: func() {}}
	if use == looks {
		return t, nil
	}
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if t.down = b.Check(checking); t.down != nil && !outage(t.down) {
		return nil, fmt.Errorf("cold.url: %w", t.down)
	}
	return t, ctx.Err()
}

// openDirectory makes a bucket in a directory ready. One that is not there, or whose file system does not
// answer, is one that does not answer just now: it may be mounted later.
func (s *tierSettings) openDirectory(ctx context.Context, dir string, use access) (*coldTier, error) {
	if use == makes {
		b, err := dirbucket.Open(dir, dirbucket.Options{Create: true})
		if err != nil {
			return nil, fmt.Errorf("cold.url: %w", err)
		}
		return &coldTier{bucket: b, kind: "bucket", place: s.ColdURL, close: func() { _ = b.Close() }}, nil
	}
	m := dirbucket.NewMount(dir, use == looks)
	t := &coldTier{bucket: m, kind: "bucket", place: s.ColdURL, close: func() { _ = m.Close() }}
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := m.Check(checking)
	if use == looks && errors.Is(err, fs.ErrPermission) {
		err = nil // what is on disk can be looked at all the same; each call to the bucket says this again
	}
	if err != nil && !outage(err) {
		return nil, fmt.Errorf("cold.url: %w", err)
	}
	if use != looks {
		t.down = err
	}
	return t, ctx.Err()
}

// s3Options says where the bucket is and how to talk to it.
func (s *tierSettings) s3Options() (o s3.Options, err error) {
	o = s3.Options{Endpoint: strings.TrimSuffix(s.ColdEndpoint, "/"), Region: s.ColdRegion, KMSKey: s.ColdSSEKMSKey}
	o.Bucket, o.Prefix, err = s3.ParseURL(s.ColdURL)
	// Servers other than Amazon's are addressed by path: their buckets are rarely names of hosts.
	o.PathStyle = s.ColdPathStyle == styleAlways || s.ColdPathStyle == styleAuto && s.ColdEndpoint != ""
	if s.ColdSSE != sseNone {
		o.SSE = s.ColdSSE
	}
	return o, err
}

// outage reports whether an error says that the bucket does not answer now, rather than that it never
// will with this configuration.
func outage(err error) bool {
	var request *url.Error
	var network *net.OpError
	var answer interface {
		error
		HTTPStatusCode() int
	}
	return errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, tiers.ErrThrottled) || errors.Is(err, dirbucket.ErrAbsent) ||
		errors.As(err, &answer) && answer.HTTPStatusCode() >= 500
}

// logName returns what the log in a directory is called below cold.url.
func (s *tierSettings) logName(dir string) (string, error) {
	place, name := placeInNode(dir), s.ColdName
	if place != nil && place.topic == "" {
		place = nil
	}
	if name == "" {
		if place != nil {
			dir = place.node
		}
		full, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		name = filepath.Base(full)
	}
	if place != nil {
		return place.inBucket(name)
	}
	return name, nil
}

// longestKey is what the longest key of an object has below the prefix of its log.
var longestKey = string((&manifest.Segment{Base: manifest.NumberMax, End: manifest.NumberMax, Attempt: manifest.NumberMax}).AppendKey(nil))

// logPrefix returns the prefix of the keys of the log in a directory.
func (s *tierSettings) logPrefix(dir string) (string, error) {
	name, err := s.logName(dir)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s.ColdURL)
	if err != nil {
		return "", err // Validate has parsed it
	}
	key := name + "/" + longestKey
	if u.Scheme == "s3" {
		key = strings.TrimPrefix(strings.TrimSuffix(u.Path, "/")+"/", "/") + key
	}
	if err := tiers.CheckKey(key); err != nil {
		return "", nameError(name, err)
	}
	return name + "/", nil
}

func nameError(name string, err error) error {
	return fmt.Errorf("the log cannot be called %.80q in the bucket: %w; set cold.name", name, err)
}

// tierWait is how long a command waits for a tier that has to be asked first and does not answer.
var tierWait = 30 * time.Second

// openLog opens the log in a directory with the tiers of its configuration. The caller calls done
// after it has closed the log.
func (s *settings) openLog(ctx context.Context, out *streams, dir string) (l *varve.Log, done func(), err error) {
	if err := cmp.Or(refuseOfNode(dir), s.refuseNameOfNode()); err != nil {
		return nil, nil, err
	}
	use, known := writes, s.Create && !s.AcceptLoss && manifestSeen(dir)
	if s.Create && !known {
		use = makes
	}
	t, err := s.openTiers(ctx, out, dir, use)
	if err != nil {
		return nil, nil, err
	}
	if errors.Is(t.down, dirbucket.ErrAbsent) && !s.Create && holdsLog(dir) && !manifestSeen(dir) { // it has never been there
		t.close()
		return nil, nil, fmt.Errorf("cold.url: %w; to begin a new bucket: --create", t.down)
	}
	if known && errors.Is(t.down, dirbucket.ErrAbsent) {
		t.down = fmt.Errorf("--create makes no new bucket for a log that has records in one, unless accept_loss gives those up: %w", t.down)
	}
	out.room = s.room()
	o := s.options()
	o.Cold, o.ColdPrefix, o.Warm, o.Logger = t.bucket, t.prefix, t.warm.options, slog.New(warner{out})
	l, err = t.open(ctx, out, dir, o)
	if err != nil {
		t.close()
		return nil, nil, err
	}
	return l, t.close, nil
}

// open opens the log. A tier that does not answer is waited for where it has to be asked.
func (t *logTiers) open(ctx context.Context, out *streams, dir string, o varve.Options) (*varve.Log, error) {
	fresh := !holdsLog(dir)
	tier, down := "cold", t.down
	if down == nil {
		tier, down = "warm", t.warm.down
	}
	if down != nil && fresh {
		key, next := "cold.url", ""
		if tier == "warm" {
			key = "warm.endpoints"
		}
		if errors.Is(down, dirbucket.ErrAbsent) {
			next = "; to begin a new bucket and log: --create"
		}
		return nil, fmt.Errorf("%s: the %s tier has to say what the log holds, and does not answer: %w%s", key, tier, down, next)
	}
	if down != nil {
		out.note("varve: warning: the %s tier does not answer: %v", tier, oneLine(down))
	}
	o.TierWait = tierWait
	l, err := varve.Open(ctx, dir, o)
	switch {
	case errors.Is(err, varve.ErrTierDown) && down != nil:
		return nil, fmt.Errorf("%s: the last life did not end in a way that lets it open without the %s tier, which does not answer: %w", dir, tier, down)
	case err != nil:
		return nil, t.named(err)
	}
	if fresh && l.Committed() > l.Start() {
		out.note("the directory held no log: it was rebuilt from %s, offsets [%d, %d)", t.places(), l.Start(), l.Committed())
	}
	return l, nil
}

// named says of a refusal which place it is about, and of an error that stays what to do.
func (t *logTiers) named(err error) error {
	if r := (*varve.RefusedError)(nil); t.bucket != nil && errors.As(err, &r) && r.Name == manifest.ManifestKey {
		return fmt.Errorf("%s: %w", t.place, err)
	}
	return t.warm.named(err)
}

// silent returns the error of a tier that did not answer a look with what can be read, nil if all did.
func (t *logTiers) silent(x *varve.Inspection) error {
	switch {
	case x.ColdDown != nil:
		return fmt.Errorf("the cold tier %s: %w", downText(x.ColdDown), x.ColdDown)
	case x.WarmDown != nil:
		return fmt.Errorf("the warm tier %s: %w", downText(x.WarmDown), t.warm.named(x.WarmDown))
	}
	return nil
}

// downText tells a tier that does not answer from one whose answer is of no use.
func downText(err error) string {
	if errors.As(err, new(*varve.RefusedError)) {
		return "cannot be read"
	}
	return "does not answer"
}

// places says where the log is besides the local disk.
func (t *logTiers) places() string {
	switch {
	case t.bucket == nil:
		return t.warm.place
	case t.warm.place == "":
		return t.place
	}
	return t.place + " and " + t.warm.place
}

// holdsLog reports whether a directory has a superblock. Without one the cold tier says what the log
// is.
func holdsLog(dir string) bool {
	for _, name := range superNames {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// manifestSeen reports whether a log in a directory knows of a manifest. Its records may be in the bucket
// alone: where that is missing, an empty one must not take its place.
func manifestSeen(dir string) bool {
	for _, name := range superNames {
		var s segment.Superblock
		if b, err := readAtMost(dir, name, segment.SuperBytesMax+1); err == nil && segment.ReadSuper(b, &s) == nil && s.ManifestSequence > 0 {
			return true
		}
	}
	return false
}

// awaitTiers waits until the log takes appends, if that depends on a tier.
func awaitTiers(ctx context.Context, out *streams, l *varve.Log) error {
	s := l.Stats()
	tier, down := "cold", s.ColdError
	if down == nil {
		tier, down = "warm", s.WarmError
	}
	if down == nil || s.Phase != "recovering" {
		return awaitWarm(ctx, l)
	}
	out.note("varve: warning: the %s tier does not answer, and has to be asked before anything is appended; waiting up to %v: %v",
		tier, tierWait, oneLine(down))
	for end := time.Now().Add(tierWait); s.Phase == "recovering"; s = l.Stats() {
		if time.Now().After(end) {
			err := cmp.Or(s.ColdError, s.WarmError, down)
			if warmDenied(err) {
				return fmt.Errorf("%w: %w%s", varve.ErrTierDown, err, warmNext(err))
			}
			return fmt.Errorf("%w: %w", varve.ErrTierDown, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := l.Err(); err != nil {
		return err
	}
	return awaitWarm(ctx, l)
}

// awaitWarm waits until the warm tier has what the disk has, where appends would be refused till then: a
// log that was given one, or whose Valkey came back empty, has something to mirror first. It waits as long
// as that goes on.
func awaitWarm(ctx context.Context, l *varve.Log) error {
	s := l.Stats()
	for end, was := time.Now().Add(tierWait), s.WarmEnd; s.WarmLagBytes > 0 && s.WarmWaived < s.End; s = l.Stats() {
		if s.WarmEnd > was {
			end, was = time.Now().Add(tierWait), s.WarmEnd
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: %w", varve.ErrTierDown, cmp.Or(s.WarmError, context.DeadlineExceeded))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return l.Err()
}

// warner prints what the library warns of.
type warner struct{ out *streams }

// Enabled implements slog.Handler. What is an error ends the command, and is said then.
func (warner) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }

// Handle implements slog.Handler.
func (w warner) Handle(_ context.Context, r slog.Record) error {
	text := strings.TrimPrefix(r.Message, "varve: ")
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "dir" {
			text += fmt.Sprintf("; %s: %s", strings.ReplaceAll(a.Key, "_", " "), strings.ReplaceAll(a.Value.String(), "\n", "; "))
		}
		return true
	})
	w.out.note("varve: warning: %s", text)
	return nil
}

// WithAttrs implements slog.Handler.
func (w warner) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w warner) WithGroup(string) slog.Handler { return w }

// lagText says how far a cold tier that does not answer is behind.
func lagText(s *varve.Stats) string {
	return fmt.Sprintf("the cold tier does not answer; it ends at offset %d, %s in %s are on this disk alone: %v",
		s.Exported, sizeText(s.ColdLagBytes), count(s.ColdLagSegments, "segment"), oneLine(s.ColdError))
}

// unexportedText says what a close leaves on this disk alone.
func unexportedText(s *varve.Stats) string {
	n := s.End - max(s.Exported, s.Start)
	what := "records are"
	if n == 1 {
		what = "record is"
	}
	return fmt.Sprintf("%d %s not in the cold tier yet, [%d, %d): they are uploaded while the log is open; --upload-wait says how long to wait for that, varve log offload waits for all, and takes them off the disk", n, what, s.End-n, s.End)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// oneLine returns an error as a line.
func oneLine(err error) string { return plain(strings.ReplaceAll(err.Error(), "\n", "; ")) }
