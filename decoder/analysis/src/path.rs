//! Digest of the events of a warp, computed from runs and cycles without expanding them.
//!
//! An event is the number `v = location * 2^32 + mask`. The digest of the events v_1 ... v_n is
//!
//! ```text
//! v_1 * B^(n-1) + v_2 * B^(n-2) + ... + v_n   modulo 2^61 - 1,   B = 0x0b5a_d4ec_eda1_ce2a
//! ```
//!
//! (Karp and Rabin, "Efficient randomized pattern-matching algorithms", 1987). It does not depend on the
//! division of events into items. Each item is an affine map of the previous digest, and squaring computes a
//! repeated map. Events that are chosen to collide defeat it.

use warptrace_format::Event;
use warptrace_format::codec::Item;

const P: u64 = (1 << 61) - 1;
const B: u64 = 0x0b5a_d4ec_eda1_ce2a;

const fn mul(a: u64, b: u64) -> u64 {
    let wide = a as u128 * b as u128;
    // Both parts are below 2^61.
    add((wide & P as u128) as u64, (wide >> 61) as u64)
}

const fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

/// `B^(i * 256^k)` for each byte `i` of an exponent.
static POWERS: [[u64; 256]; 4] = powers();

const fn powers() -> [[u64; 256]; 4] {
    let mut tables = [[1; 256]; 4];
    let mut base = B;
    let mut k = 0;
    while k < 4 {
        let mut i = 1;
        while i < 256 {
            tables[k][i] = mul(tables[k][i - 1], base);
            i += 1;
        }
        base = mul(tables[k][255], base);
        k += 1;
    }
    tables
}

/// `1 / (B - 1)`. The inverse of x is x^(P-2) (Fermat).
const INVERSE: u64 = {
    let (mut base, mut exponent, mut result) = (B - 1, P - 2, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = mul(result, base);
        }
        base = mul(base, base);
        exponent >>= 1;
    }
    result
};

fn power(exponent: u32) -> u64 {
    let bytes = exponent.to_le_bytes().map(usize::from);
    let mut result = POWERS[0][bytes[0]];
    for (table, &byte) in POWERS.iter().zip(&bytes).skip(1) {
        if byte != 0 {
            result = mul(result, table[byte]);
        }
    }
    result
}

const fn number(event: Event) -> u64 {
    (event.location as u64) << 32 | event.mask as u64
}

pub(crate) fn rename(event: Event, renamed: &[u16]) -> Event {
    let location = renamed.get(usize::from(event.location)).copied().unwrap_or(event.location);
    Event { location, mask: event.mask }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathDigest(u64);

impl PathDigest {
    pub(crate) const fn value(self) -> u64 {
        self.0
    }

    pub(crate) fn push(&mut self, item: &Item<'_>) {
        match item {
            Item::Run { event, times: 1 } => self.event(*event),
            Item::Run { event, times } => {
                let scale = power(*times);
                // 1 + B + ... + B^(times - 1)
                let sum = mul(add(scale, P - 1), INVERSE);
                self.0 = add(mul(self.0, scale), mul(number(*event), sum));
            }
            Item::Cycle { body, times } => {
                let mut once = Self::default();
                body.iter().for_each(|&event| once.event(event));
                // x -> scale * x + once, `times` times.
                let (mut square, mut rest) = ((power(body.len() as u32), once.0), *times);
                while rest > 0 {
                    if rest & 1 == 1 {
                        self.0 = add(mul(self.0, square.0), square.1);
                    }
                    square = (mul(square.0, square.0), add(mul(square.1, square.0), square.1));
                    rest >>= 1;
                }
            }
        }
    }

    fn event(&mut self, event: Event) {
        self.0 = add(mul(self.0, B), number(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_items_have_the_digest_of_their_events() {
        let event = |location, mask| Event { location, mask };
        let body = [event(7, 1), event(65_535, u32::MAX), event(7, 2)];
        for times in [1, 2, 3, 255, 256, 257, 70_000] {
            for item in [Item::Run { event: body[1], times }, Item::Cycle { body: &body, times }] {
                let mut start = PathDigest::default();
                start.event(event(3, 9));
                let (mut quick, mut slow) = (start, start);
                quick.push(&item);
                item.for_each(&mut |event| slow.event(event));
                assert_eq!(quick, slow, "{times}");
            }
        }
        assert_eq!(power(u32::MAX), mul(power(u32::MAX - 1), B));
        assert_eq!(mul(INVERSE, B - 1), 1);
    }

    #[test]
    fn the_digest_is_frozen() {
        let mut digest = PathDigest::default();
        for (location, mask) in [(1, u32::MAX), (3, 0xff)] {
            digest.push(&Item::Run { event: Event { location, mask }, times: 1 });
        }
        let expected = (u128::from(0x1_ffff_ffff_u64) * u128::from(B) + 0x3_0000_00ff) % u128::from(P);
        assert_eq!(u128::from(digest.value()), expected);
    }
}
