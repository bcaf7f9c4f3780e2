package index

// A Search goes through the positions in several lists, in order and each once. It allocates nothing
// for up to as many lists as it has room for.
type Search struct {
	lists [6][]int32
	n     int
	more  [][]int32
}

// From adds a list.
func (s *Search) From(list []int32) {
	switch {
	case len(list) == 0:
	case s.n < len(s.lists):
		s.lists[s.n] = list
		s.n++
	default:
		s.more = append(s.more, list)
	}
}

// Next returns the next position, -1 after the last one.
func (s *Search) Next() int {
	if s.n == 1 { // as mostly
		if len(s.lists[0]) == 0 {
			return -1
		}
		first := s.lists[0][0]
		s.lists[0] = s.lists[0][1:]
		return int(first)
	}
	first := int32(-1)
	least := func(list []int32) {
		if len(list) > 0 && (first < 0 || list[0] < first) {
			first = list[0]
		}
	}
	for i := range s.n {
		least(s.lists[i])
	}
	for i := range s.more {
		least(s.more[i])
	}
	if first < 0 {
		return -1
	}
	for i := range s.n {
		if len(s.lists[i]) > 0 && s.lists[i][0] == first {
			s.lists[i] = s.lists[i][1:]
		}
	}
	for i := range s.more {
		if len(s.more[i]) > 0 && s.more[i][0] == first {
			s.more[i] = s.more[i][1:]
		}
	}
	return int(first)
}
