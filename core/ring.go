package core

// ring is a queue that keeps its memory. Its length is a power of two.
type ring[T any] struct {
	buf     []T
	head, n int
}

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

// push appends a slot and returns it for the caller to fill; it holds an old value.
func (r *ring[T]) push() *T {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.n++
	return r.at(r.n - 1)
}

func (r *ring[T]) grow() {
	buf := make([]T, max(16, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}

// pop drops the first element; its slot keeps the value until it is pushed again.
func (r *ring[T]) pop() *T {
	e := r.at(0)
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return e
}

func (r *ring[T]) popBack() *T {
	r.n--
	return r.at(r.n)
}

func (r *ring[T]) reset() { r.head, r.n = 0, 0 }

// check asserts an invariant of our own code; it never judges input.
func check(ok bool, what string) {
	if !ok {
		panic("core: invariant violated: " + what)
	}
}

func roundUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }
