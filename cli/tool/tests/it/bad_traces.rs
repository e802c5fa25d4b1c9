//! Incomplete files of each kind, and the messages about them.

use std::path::{Path, PathBuf};

use crate::support::{Folder, metadata, text, write_launch, writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    File,
    Trace,
    /// A byte of the events was changed.
    Sound,
    /// The end of the file.
    End,
    Events,
    /// The trace has no event, and lost none.
    AnyEvent,
    Locations,
}

pub(crate) fn bad_traces(folder: &Folder) -> Vec<(Lack, PathBuf)> {
    let whole = std::fs::read(folder.recorded("whole.wtrc", &["--zstd", "0"])).unwrap();
    let frame = whole.windows(4).position(|tag| tag == b"FRAM").unwrap();
    let mut damaged = whole.clone();
    // In the contents of the frame, after headers of 24 and 40 bytes.
    damaged[frame + 66] ^= 1;
    let written = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.at(name), bytes).unwrap();
        folder.at(name)
    };
    let lossy = ["--walks", "256", "--rounds", "64", "--memory", "1MiB"];
    let lossy = folder.traced("stress", "lossy.wtrc", &lossy);
    let (bare, empty) = (folder.at("bare.wtrc"), folder.at("empty.wtrc"));
    without_table(&bare, &[[7, 0, 1, 0, 0, 0x80], [7, 0, 1, 0, 0, 0], [9, 0, 1, 0, 0, 0x80]]);
    without_table(&empty, &[]);
    vec![
        (Lack::File, folder.at("none.wtrc")),
        (Lack::Trace, written("text.wtrc", b"hello, this is no trace at all, only text")),
        (Lack::Sound, written("damaged.wtrc", &damaged)),
        (Lack::End, written("cut.wtrc", &whole[..whole.len() - 40])),
        (Lack::Events, lossy),
        (Lack::AnyEvent, empty),
        (Lack::Locations, bare),
    ]
}

impl Lack {
    /// Returns the start and a part of the expected error, if nothing can be shown.
    pub(crate) fn error(self, path: &Path) -> Option<[String; 2]> {
        let opens = format!("error: cannot open {}: ", text(path));
        match self {
            Self::File => Some([opens, "No such file".to_owned()]),
            Self::Trace => Some([opens, "not a .wtrc trace".to_owned()]),
            Self::Sound => Some(["error: cannot ".to_owned(), "`warptrace verify`".to_owned()]),
            _ => None,
        }
    }

    pub(crate) fn incomplete(self) -> Option<&'static str> {
        match self {
            Self::End => Some("only the first"),
            Self::Events => Some(" of 8 warps "),
            _ => None,
        }
    }
}

pub(crate) fn without_table(path: &Path, events: &[[u8; 6]]) {
    let mut writer = writer(path, &metadata("k"));
    write_launch(&mut writer, 0, [1, 32], &[&events.concat()]);
    writer.finish().unwrap();
}
