package fakebucket

import "hash/crc32"

// Damages returns what Damaging faults have struck since Reset, Flip, Expire and Restore included.
func (b *Bucket) Damages() []Damage { return b.damages }

func (b *Bucket) damage(key string, f Fault) {
	b.damages = append(b.damages, Damage{key, f})
	b.changes++
}

// spoil flips a bit of a content on its way into an object.
func (b *Bucket) spoil(f Fault, key string, c *content) {
	if f != O9Write || len(c.body) == 0 {
		return
	}
	c.flip(b.rand.Below(uint64(len(c.body)) * 8))
	b.mark(f)
	b.damage(key, f)
}

// Flip flips a bit of an object for good. It reports whether the object has that bit.
func (b *Bucket) Flip(key string, bit uint64) bool {
	i, ok := b.find(key)
	if !ok || bit >= uint64(len(b.objects[i].now.body))*8 {
		return false
	}
	b.objects[i].now.flip(bit)
	b.damage(key, O9Rot)
	return true
}

func (c *content) flip(bit uint64) {
	c.body[bit/8] ^= 1 << (bit % 8)
	c.real = crc32.Checksum(c.body, castagnoli)
}

// Cut leaves so many bytes of an object. It reports whether it had more.
func (b *Bucket) Cut(key string, bytes int) bool {
	i, ok := b.find(key)
	if !ok || len(b.objects[i].now.body) <= bytes {
		return false
	}
	o := &b.objects[i].now
	o.body = o.body[:bytes]
	o.real = crc32.Checksum(o.body, castagnoli)
	b.damage(key, O9Rot)
	return true
}

// Expire deletes an object as a lifecycle rule would. It reports whether there was one.
func (b *Bucket) Expire(key string) bool {
	if !b.remove(key) {
		return false
	}
	b.damage(key, O10Expired)
	return true
}

// Restore puts the version before in the place of an object, which may be gone. It reports whether
// there was one.
func (b *Bucket) Restore(key string) bool {
	i, ok := b.find(key)
	if !ok || !b.objects[i].old.there {
		return false
	}
	o := &b.objects[i]
	o.now, o.old = o.old, o.now
	b.damage(key, O14Restored)
	return true
}

// Len returns how many keys At knows.
func (b *Bucket) Len() int { return len(b.objects) }

// At returns what is stored under the i-th key, for who looks from outside the run; there is false
// where the object is gone. The body is valid until the next call.
func (b *Bucket) At(i int) (key string, body []byte, there bool) {
	o := &b.objects[i]
	return o.key, o.now.body, o.now.there
}

// Find returns what is stored under a key, and its CRC32C as it is, as At does.
func (b *Bucket) Find(key []byte) (body []byte, crc uint32, there bool) {
	lo, hi := 0, len(b.objects)
	for lo < hi {
		if mid := (lo + hi) / 2; b.objects[mid].key < string(key) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(b.objects) || b.objects[lo].key != string(key) {
		return nil, 0, false
	}
	c := &b.objects[lo].now
	return c.body, c.real, c.there
}

// Changes returns a number that differs once what At and Damages return does. It never returns to one
// that it had.
func (b *Bucket) Changes() uint64 { return b.changes }

// Open returns how many uploads are neither finished nor aborted.
func (b *Bucket) Open() int { return len(b.uploads) }
