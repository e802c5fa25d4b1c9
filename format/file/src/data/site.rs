//! Properties of a site: its operation, its state space, and its derivation from another site.

crate::named_enum! {
    /// Operation of a site.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum SiteKind {
        /// Reads memory.
        Load = "load",
        /// Writes memory.
        Store = "store",
        /// Reads and modifies memory atomically, and returns the old value.
        Atomic = "atomic",
        /// Modifies memory atomically, without a result.
        Reduction = "reduction",
        /// Source of an asynchronous copy.
        CopyFrom = "copy from",
        /// Destination of an asynchronous copy.
        CopyTo = "copy to",
        /// Names a value.
        Value = "value",
    }
}

impl SiteKind {
    /// Returns true if the site's accesses are addresses.
    #[must_use]
    pub const fn is_memory(self) -> bool {
        !matches!(self, Self::Value)
    }
}

crate::named_enum! {
    /// State space of a site's addresses.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum SiteSpace {
        /// No address: the site names a value.
        #[default]
        None = "",
        /// Generic address, which determines the space.
        Generic = "generic",
        /// Global memory.
        Global = "global",
        /// Shared memory of the block.
        Shared = "shared",
        /// Shared memory of the cluster.
        Cluster = "cluster",
        /// Local memory.
        Local = "local",
    }
}

crate::named_enum! {
    /// Type of a value, as its marker names it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    pub enum ValueType {
        /// Unsigned 32-bit integer.
        U32 = "u32",
        /// Signed 32-bit integer.
        I32 = "i32",
        /// Unsigned 64-bit integer.
        U64 = "u64",
        /// Signed 64-bit integer.
        I64 = "i64",
        /// 32-bit float.
        F32 = "f32",
        /// 64-bit float.
        F64 = "f64",
    }
}

impl ValueType {
    /// Returns the size of a value, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// Derivation of a *derived* site, which records nothing, from its *root*. A lane that executes the root then
/// executes the derived site once, at the root's address plus a constant. So access n of a lane at the
/// derived site follows from its access n at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Derived {
    /// Site number of the root.
    pub root: u16,
    /// Constant added to the root's address.
    pub offset: i64,
    /// True if addresses have 32 bits: sums are modulo 2^32, otherwise modulo 2^64.
    pub is_narrow: bool,
}

impl Derived {
    /// Returns the derived access for an access of the root.
    #[must_use]
    pub const fn address(&self, access: u64) -> u64 {
        access.wrapping_add(self.added(access) as u64)
    }

    /// Returns the difference to the root's access: the offset, plus or minus 2^32 if a narrow address wraps.
    #[must_use]
    pub const fn added(&self, access: u64) -> i64 {
        const ALL: i64 = 1 << 32;
        let sum = access.wrapping_add(self.offset as u64) as i64;
        match self.is_narrow {
            true if sum < 0 => self.offset.wrapping_add(ALL),
            true if sum >= ALL => self.offset.wrapping_sub(ALL),
            _ => self.offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_32_bits_wrap() {
        let narrow = |offset| Derived { root: 1, offset, is_narrow: true };
        for (offset, root, derived) in [
            (4, 100, 104),
            (-4, 0, 0xffff_fffc),
            (16, 0xffff_fff8, 8),
            (i64::from(i32::MIN), 1 << 31, 0),
            (i64::from(i32::MIN), 5, 0x8000_0005),
            (i64::from(i32::MAX), 0xffff_ffff, 0x7fff_fffe),
        ] {
            assert_eq!(narrow(offset).address(root), derived, "{offset} {root:#x}");
        }
        assert_eq!(Derived { root: 1, offset: -8, is_narrow: false }.address(4), u64::MAX - 3);
        assert_eq!(Derived { root: 1, offset: 1, is_narrow: false }.address(u64::MAX), 0);
    }
}
