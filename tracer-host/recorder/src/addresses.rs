use std::collections::BTreeMap;

/// Non-overlapping address ranges, each with a value.
#[derive(Clone, Debug)]
pub struct AddressMap<T> {
    /// Length in bytes and value, by first address.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for AddressMap<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T> AddressMap<T> {
    /// Adds a range and removes the ranges that it overlaps.
    pub fn insert(&mut self, address: u64, bytes: u64, value: T) {
        self.take_overlapped(address, bytes);
        self.ranges.insert(address, (bytes, value));
    }

    /// Removes the ranges that overlap `bytes` bytes at `address`; returns their values, last range first.
    pub fn take_overlapped(&mut self, address: u64, bytes: u64) -> Vec<T> {
        let before_end = self.ranges.range(..address.saturating_add(bytes)).rev();
        let overlapped = before_end.take_while(|(start, (bytes, _))| start.saturating_add(*bytes) > address);
        let overlapped: Vec<u64> = overlapped.map(|(start, _)| *start).collect();
        overlapped.into_iter().filter_map(|start| self.remove(start)).collect()
    }

    /// Removes the range that begins at `address`.
    pub fn remove(&mut self, address: u64) -> Option<T> {
        self.ranges.remove(&address).map(|(_, value)| value)
    }

    /// Returns the value of the range that begins at `address`.
    pub fn get(&self, address: u64) -> Option<&T> {
        self.ranges.get(&address).map(|(_, value)| value)
    }

    /// Returns the value of the range that contains the `bytes` bytes at `address`.
    pub fn around(&self, address: u64, bytes: u64) -> Option<&T> {
        let (start, (length, value)) = self.ranges.range(..=address).next_back()?;
        let offset = address - start;
        (offset <= *length && bytes <= length - offset).then_some(value)
    }

    /// Returns the ranges by address: first address, length in bytes, value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.ranges.iter().map(|(address, (bytes, value))| (*address, *bytes, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_around_bytes_and_end_those_that_they_overlap() {
        let mut map = AddressMap::default();
        for (address, value) in [(0x1000, 'a'), (0x1100, 'b'), (0x1200, 'c')] {
            map.insert(address, 0x100, value);
        }
        for (address, bytes, found) in [
            (0x1000, 0x100, Some('a')),
            (0x10ff, 1, Some('a')),
            (0x10ff, 2, None),
            (0x1100, 0, Some('b')),
            (0x1300, 0, Some('c')),
            (0xfff, 1, None),
            (u64::MAX, 8, None),
        ] {
            assert_eq!(map.around(address, bytes).copied(), found, "{bytes} bytes at {address:#x}");
        }
        assert_eq!(map.take_overlapped(0x1180, 0x81), ['c', 'b']);
        map.insert(0x10ff, 8, 'd');
        assert_eq!(map.iter().collect::<Vec<_>>(), [(0x10ff, 8, &'d')]);
        assert_eq!(
            (map.get(0x10ff).copied(), map.remove(0x1000), map.remove(0x10ff)),
            (Some('d'), None, Some('d'))
        );
    }
}
