//! What a site does, where its addresses point, and from which other site they follow.

crate::named_enum! {
    /// What a site does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum SiteKind {
        /// Reads memory.
        Load = "load",
        /// Writes memory.
        Store = "store",
        /// Changes memory in one step, and gives what was there.
        Atomic = "atomic",
        /// Changes memory in one step.
        Reduction = "reduction",
        /// Reads what an asynchronous copy writes elsewhere.
        CopyFrom = "copy from",
        /// Writes what an asynchronous copy reads elsewhere.
        CopyTo = "copy to",
        /// Names a value.
        Value = "value",
    }
}

impl SiteKind {
    /// Whether its accesses are addresses.
    #[must_use]
    pub const fn is_memory(self) -> bool {
        !matches!(self, Self::Value)
    }
}

crate::named_enum! {
    /// The state space that a site's addresses are of.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum SiteSpace {
        /// None: it names a value.
        #[default]
        None = "",
        /// Any: the address says which one.
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
    /// The type of a value, as a marker of it names it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    pub enum ValueType {
        /// An integer of 32 bits without a sign.
        U32 = "u32",
        /// An integer of 32 bits with a sign.
        I32 = "i32",
        /// An integer of 64 bits without a sign.
        U64 = "u64",
        /// An integer of 64 bits with a sign.
        I64 = "i64",
        /// A float of 32 bits.
        F32 = "f32",
        /// A float of 64 bits.
        F64 = "f64",
    }
}

impl ValueType {
    /// Returns the bytes of such a value.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// How the addresses of a *derived* site follow from those of another one, its *root*: nothing is recorded of
/// it.
///
/// A lane that executes the root executes the derived site once behind it, at the root's address and
/// something constant added. So the n-th access of a lane there follows from the lane's n-th one at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Derived {
    /// The root's number.
    pub root: u16,
    /// What is added to its address.
    pub offset: i64,
    /// Whether addresses have 32 bits, so that the sum is taken modulo 2^32; else modulo 2^64.
    pub is_narrow: bool,
}

impl Derived {
    /// Returns the access that follows from one of the root.
    #[must_use]
    pub const fn address(&self, access: u64) -> u64 {
        access.wrapping_add(self.added(access) as u64)
    }

    /// Returns what is added to an access of the root: the offset, or where addresses of 32 bits wrap 2^32
    /// more or less.
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
