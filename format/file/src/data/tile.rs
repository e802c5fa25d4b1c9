//! Tiles: the entries of several chunks of the data track, sorted by site, as columns of residuals.
//!
//! A GPU packs a tile with a block of threads, the host with [`crate::file::data`]. Both use the functions of
//! this module, so they make the same bytes. `docs/reference/format/data.md` describes the columns.
//!
//! The device gives the host a tile as a chunk of the data track, whose header holds the number of the tile's
//! chunks in place of the warp. Its payload is a table with [`TileChunk::to_words`] for each chunk, and then
//! the columns.

use super::{
    AFFINE, COUNT_SHIFT, DataEntry, GENERIC, GROUP, MAX_COUNT, MAX_SITE, SITE_SHIFT, VALUES, accesses,
};

/// Maximum entries of a tile.
pub const MAX_TILE_ENTRIES: u32 = 2048;
/// Maximum entries of a tile from a GPU, and of a chunk of its data track.
pub const DEVICE_TILE_ENTRIES: u32 = 1024;
/// Maximum chunks of a tile.
pub const MAX_TILE_CHUNKS: u32 = 256;
/// Bytes of a chunk in a tile's table.
pub const TABLE_BYTES: u32 = 16;
/// Bytes before the columns: the shift of bases and steps, and their predictions.
pub const PARAMETER_BYTES: u32 = 2;
/// Maximum payload of a tile. An entry takes at most 22 bytes, and a column 5 bytes and a width for each block.
pub const MAX_TILE_BYTES: u32 = MAX_TILE_CHUNKS * TABLE_BYTES
    + PARAMETER_BYTES
    + 22 * MAX_TILE_ENTRIES
    + 10 * (5 + MAX_TILE_ENTRIES / BLOCK);
/// Values of a block of packed bits, as in `warptrace_columns::bits`.
pub const BLOCK: u32 = 128;

/// A chunk of a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TileChunk {
    /// Linear index of the warp in its launch.
    pub warp: u32,
    /// Number of the chunk in the warp's stream, from 0.
    pub sequence: u32,
    /// Entries in the columns.
    pub entries: u32,
    /// Entries that no kernel writes. They are left out.
    pub damaged: u32,
    /// Time from which nothing is known, if accesses were lost.
    pub cut: Option<u32>,
}

const DAMAGED_SHIFT: u32 = 12;
const HAS_CUT: u32 = 1 << 31;
const _: () = assert!(MAX_TILE_ENTRIES < 1 << DAMAGED_SHIFT);

impl TileChunk {
    /// Encodes the chunk for a tile's table.
    #[must_use]
    pub fn to_words(self) -> [u32; 4] {
        let has_cut = if self.cut.is_some() { HAS_CUT } else { 0 };
        let counts = self.entries | self.damaged << DAMAGED_SHIFT | has_cut;
        [self.warp, self.sequence, counts, self.cut.unwrap_or(0)]
    }

    /// Decodes a chunk of a tile's table.
    #[must_use]
    pub fn from_words([warp, sequence, counts, time]: [u32; 4]) -> Self {
        let counted = |word: u32| word & ((1 << DAMAGED_SHIFT) - 1);
        let cut = (counts & HAS_CUT != 0).then_some(time);
        Self { warp, sequence, entries: counted(counts), damaged: counted(counts >> DAMAGED_SHIFT), cut }
    }
}

/// A valid entry of a tile: its chunk's number in the tile, and its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Number of the chunk in the tile.
    pub chunk: u32,
    /// The entry ([`DataEntry::to_words`]).
    pub words: [u32; 4],
}

impl Placed {
    /// Returns the site.
    #[must_use]
    #[inline(always)]
    pub const fn site(&self) -> u32 {
        self.words[1] >> SITE_SHIFT & MAX_SITE as u32
    }

    /// Returns an entry with this chunk, site and [`kind`](Self::kind). Its other fields are 0.
    #[must_use]
    #[inline(always)]
    pub const fn outline(chunk: u32, site: u32, kind: u32) -> Self {
        let form = match kind {
            0 => AFFINE,
            1 => GENERIC,
            2 => VALUES,
            _ => VALUES | GROUP,
        };
        Self { chunk, words: [0, site << SITE_SHIFT | form, 0, 0] }
    }

    /// Returns true for values, false for a header.
    #[must_use]
    #[inline(always)]
    pub const fn is_values(&self) -> bool {
        self.words[1] & VALUES != 0
    }

    /// Returns the accesses of values.
    #[must_use]
    #[inline(always)]
    pub const fn accesses(&self) -> u32 {
        accesses(self.words[1])
    }

    const fn count(&self) -> u32 {
        self.words[1] >> COUNT_SHIFT & MAX_COUNT
    }

    const fn base(&self) -> u64 {
        self.words[0] as u64 | (self.words[3] as u64) << 32
    }

    const fn step(&self) -> u64 {
        self.words[2].cast_signed() as i64 as u64
    }

    const fn next(&self) -> u64 {
        self.base().wrapping_add(self.step().wrapping_mul(self.count() as u64))
    }

    /// Returns the number of the kind: header of an affine or generic group, values of a lane or of a group.
    #[must_use]
    #[inline(always)]
    pub const fn kind(&self) -> u32 {
        let key = self.words[1];
        match (self.is_values(), key & AFFINE != 0, key & GROUP != 0) {
            (false, true, _) => 0,
            (false, false, _) => 1,
            (true, _, false) => 2,
            (true, _, true) => 3,
        }
    }

    /// Returns bits that are multiples of 2^shift if the differences of bases and the steps are. `before` has
    /// the values before these in the tile, or is the default.
    #[must_use]
    #[inline(always)]
    pub const fn alignment(&self, before: &Self) -> u64 {
        self.base().wrapping_sub(before.base()) | self.step()
    }
}

/// Returns the shift for the combined bits of [`Placed::alignment`].
#[must_use]
#[inline(always)]
pub const fn shift_of(bits: u64) -> u32 {
    if bits == 0 { 0 } else { bits.trailing_zeros() }
}

/// The entries that have a value in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All entries.
    All,
    /// Headers.
    Headers,
    /// Values.
    Values,
}

/// A column of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "docs/reference/format/data.md describes the columns")]
pub enum Column {
    Site,
    Chunk,
    Kind,
    Mask,
    Time,
    Spread,
    Owner,
    Count,
    Step,
    Base,
}

const fn zigzag(difference: u32) -> u64 {
    (difference << 1 ^ (difference.cast_signed() >> 31).cast_unsigned()) as u64
}

const fn unzigzag(number: u64) -> u32 {
    let number = number as u32;
    number >> 1 ^ (number & 1).wrapping_neg()
}

const fn zigzag_units(difference: u64, shift: u32) -> u64 {
    let units = difference.cast_signed() >> (shift & 63);
    (units << 1 ^ units >> 63).cast_unsigned()
}

const fn unzigzag_units(number: u64, shift: u32) -> u64 {
    (number >> 1 ^ (number & 1).wrapping_neg()) << (shift & 63)
}

impl Column {
    /// All columns in the order of the file.
    pub const ALL: [Self; 10] = {
        let mut all = [Self::Site; 10];
        let mut number = 0;
        while number < all.len() {
            all[number] = Self::at(number as u32);
            number += 1;
        }
        all
    };

    /// Returns a column by its number in [`ALL`](Self::ALL), without a table in memory; the last one for others.
    #[must_use]
    #[inline(always)]
    pub const fn at(number: u32) -> Self {
        match number {
            0 => Self::Site,
            1 => Self::Chunk,
            2 => Self::Kind,
            3 => Self::Mask,
            4 => Self::Time,
            5 => Self::Spread,
            6 => Self::Owner,
            7 => Self::Count,
            8 => Self::Step,
            _ => Self::Base,
        }
    }

    /// Returns the entries that have a value in the column.
    #[must_use]
    pub const fn part(self) -> Part {
        match self {
            Self::Site | Self::Chunk | Self::Kind => Part::All,
            Self::Mask | Self::Time | Self::Spread => Part::Headers,
            Self::Owner | Self::Count | Self::Step | Self::Base => Part::Values,
        }
    }

    /// Returns true if the values have 64 bits, false for 32.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Step | Self::Base)
    }

    /// Returns the number of predictions: the encoder takes the one with the smallest column.
    #[must_use]
    pub const fn predictions(self) -> u32 {
        match self {
            Self::Step => 3,
            Self::Base => 2,
            _ => 1,
        }
    }

    /// Returns the value of an entry. `before` is the entry before it in the column, or the default. `by` is
    /// the prediction, and `shift` is of [`shift_of`].
    #[must_use]
    #[inline(always)]
    pub const fn residual(self, by: u32, shift: u32, before: &Placed, entry: &Placed) -> u64 {
        let (old, new) = (&before.words, &entry.words);
        match self {
            Self::Site => (entry.site() - before.site()) as u64,
            Self::Chunk if entry.site() == before.site() => (entry.chunk - before.chunk) as u64,
            Self::Chunk => entry.chunk as u64,
            Self::Kind => entry.kind() as u64,
            Self::Mask => (new[0] ^ old[0]) as u64,
            Self::Time => zigzag(new[2].wrapping_sub(old[2])),
            Self::Spread if new[1] & AFFINE == 0 => 0,
            Self::Spread => zigzag(new[3].wrapping_sub(old[3])),
            Self::Owner => zigzag((new[1] & 0x1f).wrapping_sub(old[1] & 0x1f)),
            Self::Count => (entry.count() - 1) as u64,
            Self::Step if entry.count() == 1 => 0,
            Self::Step => {
                zigzag_units(entry.step().wrapping_sub(Self::expected_step(by, before, entry)), shift)
            }
            Self::Base => zigzag_units(entry.base().wrapping_sub(Self::expected_base(by, before)), shift),
        }
    }

    const fn expected_step(by: u32, before: &Placed, entry: &Placed) -> u64 {
        match by {
            0 => 0,
            1 => before.step(),
            // The second access is predicted to be the base before.
            _ => before.base().wrapping_sub(entry.base()),
        }
    }

    const fn expected_base(by: u32, before: &Placed) -> u64 {
        if by == 0 { before.base() } else { before.next() }
    }
}

/// Values of an entry in the columns, in their order. Columns without a value have 0.
pub type Residuals = [u64; Column::ALL.len()];

/// Decodes an entry from its values in the columns, the inverse of [`Column::residual`]. `before` is the entry
/// before it; `header` and `values` are the header and the values before it. Returns `None` for an entry that
/// no kernel writes, or a chunk out of range.
#[must_use]
pub fn restore(
    [site, chunk, kind, mask, time, spread, owner, count, step, base]: Residuals,
    (step_by, base_by): (u32, u32),
    shift: u32,
    [before, header, values]: [&Placed; 3],
) -> Option<Placed> {
    let found = before.site().checked_add(u32::try_from(site).ok()?)?;
    let from = if site == 0 { before.chunk } else { 0 };
    let chunk = from.checked_add(u32::try_from(chunk).ok()?)?;
    let key = (found <= MAX_SITE as u32).then_some(found)? << SITE_SHIFT;
    let words = if kind < 2 {
        let spread = if kind == 0 {
            header.words[3].wrapping_add(unzigzag(spread))
        } else {
            u32::try_from(spread).ok()?
        };
        [
            mask as u32 ^ header.words[0],
            key | if kind == 0 { AFFINE } else { GENERIC },
            header.words[2].wrapping_add(unzigzag(time)),
            spread,
        ]
    } else {
        let owner = (values.words[1] & 0x1f).wrapping_add(unzigzag(owner));
        let count = u32::try_from(count).ok().filter(|count| *count < MAX_COUNT)? + 1;
        let base = Column::expected_base(base_by, values).wrapping_add(unzigzag_units(base, shift));
        let group = if kind == 3 { GROUP } else { 0 };
        let key = VALUES | key | count << COUNT_SHIFT | group | (owner < 32 && kind < 4).then_some(owner)?;
        let mut entry = Placed { chunk, words: [base as u32, key, 0, (base >> 32) as u32] };
        if count > 1 {
            let step =
                Column::expected_step(step_by, values, &entry).wrapping_add(unzigzag_units(step, shift));
            entry.words[2] = i32::try_from(step.cast_signed()).ok()?.cast_unsigned();
        } else if step != 0 {
            return None;
        }
        entry.words
    };
    DataEntry::from_words(words).map(|_| Placed { chunk, words })
}

/// Sizes of a column's elements: the bytes by Stream VByte without control bytes, or the bits of a block's
/// largest value. `warptrace_columns` defines both packings.
#[must_use]
#[inline(always)]
pub const fn code_of(value: u64, is_wide: bool) -> u32 {
    // Without branches, which would separate lanes before a shuffle.
    let bytes = 8 - value.leading_zeros() / 8;
    (bytes > 1) as u32 + (bytes > 2) as u32 + (bytes > 3 + is_wide as u32) as u32
}

/// Returns the bytes of a value with this Stream VByte code.
#[must_use]
#[inline(always)]
pub const fn code_bytes(code: u32, is_wide: bool) -> u32 {
    if is_wide { 1 << code } else { code + 1 }
}

/// Returns the bytes of a block of `values` values whose combined bits are `bits`, without its width.
#[must_use]
#[inline(always)]
pub const fn block_bytes(values: u32, bits: u64) -> u32 {
    (values * (64 - bits.leading_zeros())).div_ceil(8)
}

/// Returns the bytes before a column's packed values, and how many: shape, packing (2 for bits, otherwise
/// Stream VByte), and the number of values.
#[must_use]
#[inline(always)]
pub const fn column_header(values: u32, is_wide: bool, is_bits: bool) -> ([u8; 4], u32) {
    let packing = if is_bits { 2 } else { 1 };
    if values < 0x80 {
        ([is_wide as u8, packing, values as u8, 0], 3)
    } else {
        ([is_wide as u8, packing, values as u8 | 0x80, (values >> 7) as u8], 4)
    }
}
