//! The embedded library, compressed. It is unpacked once, into the user's cache. Programs run its code, so a
//! cached file is used only if it is intact and no other user could have changed it.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use super::is_loadable;

/// Length, CRC-32 and compressed bytes of the library.
const SHIM: (usize, u32, &[u8]) = warptrace_embed::shim!();

pub(super) fn unpack() -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(SHIM.2, SHIM.0)
}

/// Returns the library in the user's cache, open so that other tools do not remove it; `None` if it cannot be
/// cached.
pub(super) fn kept() -> Option<(PathBuf, File)> {
    let named = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    kept_in(&cache.join("warptrace/run"))
}

fn kept_in(folder: &Path) -> Option<(PathBuf, File)> {
    let existing = folder.ancestors().find(|folder| folder.exists())?.canonicalize().ok()?;
    if !existing.ancestors().all(is_private) {
        return None;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    let path = folder.canonicalize().ok()?.join(format!("libwarptrace_shim-{}-{:08x}.so", SHIM.0, SHIM.1));
    if !is_loadable(&path) || statvfs(folder).ok()?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return None;
    }
    let file = whole(&path).or_else(|| {
        let mut draft = NamedTempFile::new_in(folder).ok()?;
        draft.write_all(&unpack().ok()?).ok()?;
        draft.persist(&path).ok()?;
        remove_others(&path);
        whole(&path)
    })?;
    Some((path, file))
}

/// Returns true if only this user and root can replace entries of the folder, also by its sticky bit.
fn is_private(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| {
        [0, geteuid().as_raw()].contains(&found.uid())
            && (found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0)
    })
}

/// Opens the library if it is this user's and intact. Other tools do not remove it while it is open.
fn whole(path: &Path) -> Option<File> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(nofollow).open(path).ok()?;
    file.lock_shared().ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0;
    // Another tool may have removed the file before it was locked.
    if !is_ours || found.nlink() == 0 || found.len() != SHIM.0 as u64 {
        return None;
    }
    let mut bytes = Vec::with_capacity(SHIM.0);
    file.read_to_end(&mut bytes).ok()?;
    (crc32fast::hash(&bytes) == SHIM.1).then_some(file)
}

/// Removes the libraries of other tools that are not in use.
fn remove_others(path: &Path) {
    let entries = path.parent().map(fs::read_dir).into_iter().flatten().flatten().flatten();
    let is_other = |other: &PathBuf| other != path && other.extension() == Some(OsStr::new("so"));
    for other in entries.map(|entry| entry.path()).filter(is_other) {
        if File::open(&other).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn the_library_is_unpacked_once() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = cache.path().join("a/b");
        let (path, first) = kept_in(&folder).expect("it is kept");
        assert_eq!(fs::read(&path).expect("a library"), unpack().expect("a library"));
        let (again, second) = kept_in(&folder).expect("it is kept");
        let inode = |file: &File| file.metadata().expect("a file").ino();
        assert_eq!((again, inode(&second)), (path.clone(), inode(&first)));
        assert_eq!(path.metadata().expect("a file").mode() & 0o077, 0);
        assert_eq!(folder.metadata().expect("a folder").mode() & 0o077, 0);
    }

    #[test]
    fn what_is_changed_or_can_be_changed_by_others_is_replaced() {
        let cache = tempfile::tempdir().expect("a folder");
        let (path, _) = kept_in(cache.path()).expect("it is kept");
        let right = unpack().expect("a library");
        let write = |bytes: &[u8]| fs::write(&path, bytes).expect("it is ours");
        let elsewhere = cache.path().join("elsewhere");
        let mut other = right.clone();
        other[right.len() / 2] ^= 1;
        let changes: [(&str, &dyn Fn()); 5] = [
            ("a changed byte", &|| write(&other)),
            ("a part", &|| write(&right[1..])),
            ("nothing", &|| write(&[])),
            ("writable by others", &|| set_mode(&path, 0o666)),
            ("a link", &|| {
                fs::rename(&path, &elsewhere).expect("it is ours");
                symlink(&elsewhere, &path).expect("the folder is ours");
            }),
        ];
        for (what, change) in changes {
            change();
            assert!(whole(&path).is_none(), "{what}");
            kept_in(cache.path()).expect("it is kept");
            let found = path.symlink_metadata().expect("a file");
            assert!(found.is_file() && found.mode() & 0o022 == 0, "{what}");
            assert!(fs::read(&path).expect("a library") == right, "{what}");
        }
    }

    #[test]
    fn nothing_is_kept_where_others_can_write() {
        let cache = tempfile::tempdir().expect("a folder");
        let (open, inner) = (cache.path().join("open"), cache.path().join("open/inner"));
        fs::create_dir_all(&inner).expect("a folder");
        kept_in(&inner).expect("it is kept");
        for mode in [0o777, 0o770] {
            set_mode(&open, mode);
            assert!(kept_in(&inner).is_none() && kept_in(&open.join("new")).is_none(), "{mode:o}");
        }
        assert!(!open.join("new").exists());
        // As in `/tmp`.
        set_mode(&open, 0o1777);
        assert!(kept_in(&inner).is_some());
        assert!(kept_in(Path::new("/dev/null/folder")).is_none());
        assert!(kept_in(&cache.path().join("a folder")).is_none(), "LD_PRELOAD separates names by spaces");
    }

    #[test]
    fn libraries_of_other_tools_are_removed_unless_they_are_in_use() {
        let cache = tempfile::tempdir().expect("a folder");
        let [used, unused] = ["libwarptrace_shim-1-0.so", "libwarptrace_shim-2-0.so"].map(|name| {
            let path = cache.path().join(name);
            fs::write(&path, "another").expect("a file");
            path
        });
        let user = File::open(&used).expect("a file");
        user.lock_shared().expect("nobody else has it");
        let (path, _) = kept_in(cache.path()).expect("it is kept");
        assert!(path.exists() && used.exists() && !unused.exists());
    }

    #[test]
    fn a_library_that_was_removed_is_not_used() {
        let cache = tempfile::tempdir().expect("a folder");
        let (path, file) = kept_in(cache.path()).expect("it is kept");
        fs::remove_file(&path).expect("it is ours");
        assert!(whole(&path).is_none() && file.metadata().expect("it is open").nlink() == 0);
        assert!(kept_in(cache.path()).expect("it is kept").0.exists());
    }
}
