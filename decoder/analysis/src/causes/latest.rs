//! Finds the last event that each two lanes of a warp shared.
//!
//! Shared events have increasing numbers. Each lane has a row with the number of the last event that it
//! shared with each other lane. An event reads the rows of its active lanes once: their maxima are the last
//! events shared with the idle lanes. It then writes its number for its lanes, unless all lanes are active.
//!
//! A row fits into two vector registers because numbers are small. 32 lanes form 496 pairs: when the numbers
//! run out, those in use are renumbered in the same order.

use super::{LANES, is_shared, lanes_of};

/// Number of available numbers. At most 498 are in use.
const NUMBERS: usize = 2048;
/// Entry of lanes that are not idle, and of pairs of lanes without a shared event.
const NONE: i16 = 0;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct LaneRow([i16; LANES]);

#[derive(Debug)]
pub(super) struct Latest {
    rows: [LaneRow; LANES],
    /// For each idle lane of the last event: the number of the last event shared with an active lane.
    found: LaneRow,
    /// The last event of all lanes, or the start. Pairs without a later one have at most this number.
    of_all: i16,
    newest: i16,
    /// Place of each event, as defined by the caller, by number. 0 for none.
    places: [u32; NUMBERS],
}

impl Default for Latest {
    fn default() -> Self {
        let none = LaneRow([NONE; LANES]);
        Self { rows: [none; LANES], found: none, of_all: NONE, newest: NONE, places: [0; NUMBERS] }
    }
}

impl Latest {
    /// Takes an event of all lanes of the warp, or the start of another warp.
    pub(super) fn share_all(&mut self, place: u32) {
        self.of_all = self.number(place);
        self.found = LaneRow([NONE; LANES]);
    }

    /// Takes an event of some lanes, while the lanes in `idle` are idle.
    #[inline(always)]
    pub(super) fn share(&mut self, mask: u32, idle: u32, place: u32) {
        let number = if is_shared(mask) { self.number(place) } else { NONE };
        self.found = share(&mut self.rows, mask, idle, self.of_all, number);
    }

    /// Takes an event without lanes of the warp, from a malformed trace. `place` is the cause for `idle`.
    #[cold]
    pub(super) fn share_none(&mut self, idle: u32, place: u32) {
        let number = self.number(place);
        self.found = LaneRow([NONE; LANES]);
        lanes_of(idle).for_each(|lane| self.found.0[lane] = number);
    }

    #[inline]
    pub(super) fn share_again(&mut self, place: u32) {
        self.places[self.newest as usize % NUMBERS] = place;
    }

    /// Returns the place of the last event that an idle lane shared with an active one; 0 for other lanes.
    #[inline]
    pub(super) fn cause(&self, lane: usize) -> u32 {
        // All numbers are below `NUMBERS`.
        self.places[self.found.0[lane] as usize % NUMBERS]
    }

    #[inline]
    fn number(&mut self, place: u32) -> i16 {
        if self.newest as usize == NUMBERS - 1 {
            self.number_anew();
        }
        self.newest += 1;
        self.share_again(place);
        self.newest
    }

    #[cold]
    fn number_anew(&mut self) {
        let mut is_used = [false; NUMBERS];
        let numbers = self.rows.iter().flat_map(|LaneRow(row)| row);
        // Numbers of events before the last one of all lanes are not needed.
        numbers.for_each(|number| is_used[(*number).max(self.of_all) as usize] = true);
        (is_used[NONE as usize], is_used[self.of_all as usize]) = (false, true);
        let mut anew = [NONE; NUMBERS];
        self.newest = NONE;
        for number in (0..NUMBERS).filter(|number| is_used[*number]) {
            self.newest += 1;
            anew[number] = self.newest;
            self.places[self.newest as usize] = self.places[number];
        }
        self.of_all = anew[self.of_all as usize];
        for number in self.rows.iter_mut().flat_map(|LaneRow(row)| row) {
            *number = anew[*number as usize];
        }
    }
}

/// Returns for each lane of `idle` the maximum of `of_all` and its entries in the rows of `mask`; [`NONE`]
/// for other lanes. Then raises the entries for the lanes of `mask` to `number`.
#[inline(always)]
fn share(rows: &mut [LaneRow; LANES], mask: u32, idle: u32, of_all: i16, number: i16) -> LaneRow {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has AVX2 and BMI1, as checked above.
        return unsafe { avx2::share(rows, mask, idle, of_all, number) };
    }
    share_portably(rows, mask, idle, of_all, number)
}

fn share_portably(rows: &mut [LaneRow; LANES], mask: u32, idle: u32, of_all: i16, number: i16) -> LaneRow {
    let mut own = [NONE; LANES];
    lanes_of(mask).for_each(|lane| own[lane] = number);
    let mut found = [of_all; LANES];
    for lane in lanes_of(mask) {
        let LaneRow(row) = &mut rows[lane];
        for ((found, number), own) in found.iter_mut().zip(row).zip(&own) {
            *found = (*found).max(*number);
            *number = (*number).max(*own);
        }
    }
    lanes_of(!idle).for_each(|lane| found[lane] = NONE);
    LaneRow(found)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{LANES, LaneRow};

    #[target_feature(enable = "avx2,bmi1")]
    #[inline]
    pub(super) fn share(
        rows: &mut [LaneRow; LANES],
        mask: u32,
        idle: u32,
        of_all: i16,
        number: i16,
    ) -> LaneRow {
        let own = spread(mask, number);
        let mut found = [_mm256_set1_epi16(of_all); 2];
        let mut rest = mask;
        while rest != 0 {
            let row = &mut rows[rest.trailing_zeros() as usize];
            rest &= rest - 1;
            let [low, high] = load(row);
            found = [_mm256_max_epi16(found[0], low), _mm256_max_epi16(found[1], high)];
            store(row, [_mm256_max_epi16(low, own[0]), _mm256_max_epi16(high, own[1])]);
        }
        let idle = spread(idle, -1);
        let mut result = LaneRow([0; LANES]);
        store(&mut result, [_mm256_and_si256(found[0], idle[0]), _mm256_and_si256(found[1], idle[1])]);
        result
    }

    /// Returns `number` for each lane of the mask, and 0 for others.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn spread(mask: u32, number: i16) -> [__m256i; 2] {
        let bits = _mm256_setr_epi16(
            1,
            2,
            4,
            8,
            16,
            32,
            64,
            128,
            256,
            512,
            1 << 10,
            1 << 11,
            1 << 12,
            1 << 13,
            1 << 14,
            i16::MIN,
        );
        // A closure would not be compiled with this function's target features.
        let [low, high] = [_mm256_set1_epi16(mask as i16), _mm256_set1_epi16((mask >> 16) as i16)];
        let number = _mm256_set1_epi16(number);
        [
            _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_and_si256(low, bits), bits), number),
            _mm256_and_si256(_mm256_cmpeq_epi16(_mm256_and_si256(high, bits), bits), number),
        ]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(LaneRow(row): &LaneRow) -> [__m256i; 2] {
        let at: *const __m256i = row.as_ptr().cast();
        // SAFETY: a row has 64 bytes and is aligned to 64 bytes.
        unsafe { [_mm256_load_si256(at), _mm256_load_si256(at.add(1))] }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store(LaneRow(row): &mut LaneRow, [low, high]: [__m256i; 2]) {
        let at: *mut __m256i = row.as_mut_ptr().cast();
        // SAFETY: a row has 64 bytes and is aligned to 64 bytes.
        unsafe {
            _mm256_store_si256(at, low);
            _mm256_store_si256(at.add(1), high);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_find_and_note_the_same(
            seed in proptest::collection::vec(0_i16..500, LANES * LANES),
            mask: u32, idle: u32, of_all in 0_i16..600, number in prop_oneof![Just(NONE), Just(700_i16)],
        ) {
            let mut rows = [LaneRow([NONE; LANES]); LANES];
            for (number, seed) in rows.iter_mut().flat_map(|LaneRow(row)| row).zip(seed) {
                *number = seed;
            }
            let mut same = rows;
            let found = share(&mut rows, mask, idle, of_all, number);
            let expected = share_portably(&mut same, mask, idle, of_all, number);
            prop_assert_eq!(found.0, expected.0);
            prop_assert_eq!(rows.map(|LaneRow(row)| row), same.map(|LaneRow(row)| row));
        }
    }

    #[test]
    fn all_pairs_find_numbers_that_are_given_anew() {
        let mut latest = Latest::default();
        latest.share_all(1);
        let pairs: Vec<[usize; 2]> =
            (0..LANES).flat_map(|one| (one + 1..LANES).map(move |other| [one, other])).collect();
        let place = |number: usize| (number % 1000) as u32 + 2;
        for number in 0..9 * NUMBERS {
            let [one, other] = pairs[number % pairs.len()];
            latest.share(1 << one | 1 << other, 0, place(number));
        }
        let begun = 9 * NUMBERS;
        for (at, [one, other]) in pairs.iter().enumerate() {
            let last = (0..begun).rev().find(|number| number % pairs.len() == at).expect("each came");
            latest.share(1 << one, 1 << other, 0);
            assert_eq!(latest.cause(*other), place(last));
        }
    }
}
