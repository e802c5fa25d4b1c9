use std::io::Write;
use std::sync::{Arc, Mutex};

use warptrace_format::file::{
    Frame, KnownLabels, LaunchInfo, LaunchLabels, SECTION_HEADER_BYTES, SectionHeader,
};

#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn sections(&self, tag: [u8; 4]) -> Vec<(u16, Vec<u8>)> {
        let (file, mut at, mut found) = (self.bytes(), 24, Vec::new());
        while at < file.len() {
            let header = SectionHeader::parse(&file[at..], 0).unwrap();
            if header.tag.0 == tag {
                let body = &file[at + SECTION_HEADER_BYTES..][..header.length as usize];
                found.push((header.version, body.to_vec()));
            }
            at += header.total_bytes() as usize;
        }
        found
    }

    pub(super) fn contents(&self) -> (Vec<FoundChunk>, usize) {
        let mut chunks = Vec::new();
        for (version, body) in self.sections(*b"FRAM") {
            let frame = Frame::decode(version, &body, 0).unwrap();
            let launch = frame.header().launch;
            chunks.extend(
                frame
                    .chunks()
                    .map(|chunk| (launch, chunk.entry.warp, chunk.entry.sequence, chunk.payload.to_vec())),
            );
        }
        (chunks, self.sections(*b"ACCT").len())
    }

    pub(super) fn launches(&self) -> Vec<LaunchInfo> {
        let sections = self.sections(*b"LNCH");
        sections.iter().map(|(version, body)| LaunchInfo::decode(*version, body, 0).unwrap()).collect()
    }

    pub(super) fn labels(&self) -> Vec<Option<String>> {
        let mut labels = KnownLabels::default();
        for (_, body) in self.sections(*b"LABL") {
            labels.add(LaunchLabels::decode(&body, 0).unwrap());
        }
        (0..self.launches().len() as u32).map(|launch| labels.label_of(launch).map(str::to_owned)).collect()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Full(pub(super) usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) type FoundChunk = (u32, u32, u32, Vec<u8>);
