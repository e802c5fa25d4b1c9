//! Perfetto's native format. Launches have tracks, with tracks of their blocks, with tracks of their warps.
//! If the trace has spans, blocks are in tracks of multiprocessors, and these in the track of the device.

mod arguments;
mod messages;
mod ranks;

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use warptrace_analysis::Wait;
use warptrace_decoder::{EventRun, LossyWarps};
use warptrace_format::file::{LaunchInfo, StreamId};

use self::arguments::{
    ARGUMENTS, COUNT, CYCLES, ENDED_ON, EVENTS, FILE, GAP, LANES, LAUNCH, LINE, LOCATION, MASK, WHY, number,
};
use self::messages::{
    COUNTER, CounterDescriptor, DebugAnnotation, EXPLICIT, INSTANT, InternedData, InternedName,
    InternedString, NEEDS_STATE, SLICE_BEGIN, SLICE_END, STATE_CLEARED, TracePacket, TrackDescriptor,
    TrackEvent,
};
use super::load::Load;
use super::{Counted, Ran, UNENDED, Written, draw, mark};
use crate::axis::Scale;
use crate::error::ExportError;
use crate::source::ExportSource;

pub use self::ranks::perfetto_ranks;

const SEQUENCE: u32 = 1;
/// The first iid of names other than known locations, whose iids are their ids.
const OTHER_NAMES: u64 = 1 << 16;
const WAIT: &str = "wait";
const ABOUT: u64 = 1;

/// Writes a timeline in Perfetto's format. Calls `sliced` with the number of slices after each slice. Fails
/// if the trace is damaged, the output exceeds [its limit](warptrace_decoder::TraceFile::limited), or `out`
/// cannot be written.
pub fn perfetto(
    source: &ExportSource<'_>,
    out: impl Write,
    sliced: &mut dyn FnMut(u64),
) -> Result<Written, ExportError> {
    let out = Counted { out: source.trace().limited(out), bytes: 0 };
    let scale = Scale::shared(source)?;
    let mut tracks = Perfetto::new(out, scale.unit());
    tracks.begin(source, scale)?;
    let mut written = draw(source, scale, &mut tracks, sliced)?;
    tracks.out.flush()?;
    written.bytes = tracks.out.bytes;
    Ok(written)
}

pub(super) struct Perfetto<W> {
    out: Counted<W>,
    /// Nanoseconds for one unit of the axis.
    unit: u64,
    buffer: Vec<u8>,
    files: HashMap<String, u64>,
    /// iids of names other than known locations, from [`OTHER_NAMES`].
    names: HashMap<String, u64>,
    /// Tracks are numbered in the order of creation.
    last_track: u64,
    device: Option<u64>,
    sms: HashMap<u32, u64>,
    host: Option<u64>,
    host_lanes: Vec<u64>,
    launch: u64,
    block: u64,
    warp: u64,
    /// Tracks of the warp's waits, and the end of the last wait of each.
    waits: Vec<(u64, u64)>,
}

impl<W: Write> Perfetto<W> {
    fn new(out: Counted<W>, unit: u64) -> Self {
        Self {
            out,
            unit,
            buffer: Vec::new(),
            files: HashMap::new(),
            names: HashMap::new(),
            last_track: ABOUT,
            device: None,
            sms: HashMap::new(),
            host: None,
            host_lanes: Vec::new(),
            launch: 0,
            block: 0,
            warp: 0,
            waits: Vec::new(),
        }
    }

    fn packet(&mut self, mut packet: TracePacket) -> Result<(), ExportError> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = Some(packet.sequence_flags.unwrap_or(0) | NEEDS_STATE);
        self.buffer.clear();
        // Field 1 of `Trace` is the list of packets.
        prost::encoding::message::encode(1, &packet, &mut self.buffer);
        Ok(self.out.write_all(&self.buffer)?)
    }

    fn begin(&mut self, source: &ExportSource<'_>, scale: Scale) -> Result<(), ExportError> {
        let mut interned = InternedData::default();
        for info in &source.trace().metadata().locations {
            let name = Some(source.label(info.id));
            interned.event_names.push(InternedName { iid: Some(info.id.into()), name });
            let next = self.files.len() as u64 + 1;
            if !info.file.is_empty() && !self.files.contains_key(&info.file) {
                self.files.insert(info.file.clone(), next);
                let str = Some(info.file.clone().into_bytes());
                interned.debug_annotation_string_values.push(InternedString { iid: Some(next), str });
            }
        }
        let name = if source.lacks().is_whole() { "about this trace" } else { "INCOMPLETE trace" };
        let facts = source.facts().into_iter().chain(scale.facts(source));
        self.about(interned, (name, scale.words()), facts.map(|(key, value)| (key.to_owned(), value)))
    }

    fn about(
        &mut self,
        mut interned: InternedData,
        (name, description): (&str, &str),
        facts: impl Iterator<Item = (String, String)>,
    ) -> Result<(), ExportError> {
        for (iid, name) in (1..).zip(ARGUMENTS) {
            let name = Some(name.to_owned());
            interned.debug_annotation_names.push(InternedName { iid: Some(iid), name });
        }
        let sequence_flags = Some(STATE_CLEARED);
        self.packet(TracePacket { interned_data: Some(interned), sequence_flags, ..TracePacket::default() })?;
        self.descriptor(ABOUT, None, "about this trace".to_owned(), Some(description.to_owned()), -1)?;
        let arguments = facts.map(|(key, value)| DebugAnnotation {
            name: Some(key),
            string_value: Some(value),
            ..DebugAnnotation::default()
        });
        self.event(
            0,
            TrackEvent {
                r#type: Some(INSTANT),
                track_uuid: Some(ABOUT),
                name: Some(name.to_owned()),
                debug_annotations: arguments.collect(),
                ..TrackEvent::default()
            },
        )
    }

    fn descriptor(
        &mut self,
        uuid: u64,
        parent_uuid: Option<u64>,
        name: String,
        description: Option<String>,
        rank: i32,
    ) -> Result<(), ExportError> {
        let track = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid,
            child_ordering: Some(EXPLICIT),
            sibling_order_rank: Some(rank),
            description,
            counter: None,
        };
        self.packet(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
    }

    fn counter(
        &mut self,
        parent: u64,
        (name, description, rank): (&str, String, i32),
        values: &[(u64, f64)],
    ) -> Result<(), ExportError> {
        self.last_track += 1;
        let (uuid, name) = (Some(self.last_track), Some(name.to_owned()));
        let track = TrackDescriptor {
            uuid,
            name: name.clone(),
            parent_uuid: Some(parent),
            child_ordering: None,
            sibling_order_rank: Some(rank),
            description: Some(description),
            counter: Some(CounterDescriptor { unit_name: name }),
        };
        self.packet(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })?;
        for (at, value) in values {
            let double_counter_value = Some(*value);
            let r#type = Some(COUNTER);
            self.event(
                *at,
                TrackEvent { r#type, track_uuid: uuid, double_counter_value, ..TrackEvent::default() },
            )?;
        }
        Ok(())
    }

    fn track(&mut self, parent: Option<u64>, name: String, rank: u32) -> Result<u64, ExportError> {
        self.last_track += 1;
        let uuid = self.last_track;
        self.descriptor(uuid, parent, name, None, i32::try_from(rank).unwrap_or(i32::MAX))?;
        Ok(uuid)
    }

    fn event(&mut self, event: u64, track_event: TrackEvent) -> Result<(), ExportError> {
        let timestamp = Some(event.saturating_mul(self.unit));
        self.packet(TracePacket { timestamp, track_event: Some(track_event), ..TracePacket::default() })
    }

    fn ran(&mut self, track: u64, ran: &Ran<'_>) -> Result<(), ExportError> {
        let launch = Some(number(LAUNCH, ran.launch.into()));
        let cycles = ran.cycles.map(|cycles| number(CYCLES, cycles));
        let moved_to = ran.moved_to.map(|sm| number(ENDED_ON, sm.into()));
        let gap = ran.follows.map(|follows| number(GAP, follows.gap));
        // A flow has the number of the following launch, so ids are unique.
        let flow = |launch: u32| u64::from(launch) + 1;
        let begin = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            name_iid: self.name(ran.kernel)?,
            debug_annotations: [launch, cycles, moved_to, gap].into_iter().flatten().collect(),
            flow_ids: ran.followed_by.iter().map(|follows| flow(follows.launch)).collect(),
            terminating_flow_ids: ran.follows.iter().map(|follows| flow(follows.launch)).collect(),
            ..TrackEvent::default()
        };
        self.event(ran.lasts.start, begin)
    }

    fn end(&mut self, track: u64, at: u64) -> Result<(), ExportError> {
        let track_uuid = Some(track);
        self.event(at, TrackEvent { r#type: Some(SLICE_END), track_uuid, ..TrackEvent::default() })
    }

    /// Returns the iid of a name. Writes the name before the first packet that uses it.
    fn name(&mut self, name: &str) -> Result<Option<u64>, ExportError> {
        if let Some(iid) = self.names.get(name) {
            return Ok(Some(*iid));
        }
        let iid = Some(OTHER_NAMES + self.names.len() as u64);
        let event_names = vec![InternedName { iid, name: Some(name.to_owned()) }];
        let interned_data = Some(InternedData { event_names, ..InternedData::default() });
        self.packet(TracePacket { interned_data, ..TracePacket::default() })?;
        self.names.extend(iid.map(|iid| (name.to_owned(), iid)));
        Ok(iid)
    }
}

impl<W: Write> Perfetto<W> {
    pub(super) fn launch(&mut self, source: &ExportSource<'_>, info: &LaunchInfo) -> Result<(), ExportError> {
        self.launch = self.track(None, source.launch_name(info), info.number())?;
        Ok(())
    }

    pub(super) fn block(&mut self, [x, y, z]: [u32; 3], linear: u32) -> Result<(), ExportError> {
        self.block = self.track(Some(self.launch), format!("block {x},{y},{z}"), linear)?;
        Ok(())
    }

    pub(super) fn warp(&mut self, id: &StreamId) -> Result<(), ExportError> {
        self.warp = self.track(Some(self.block), format!("warp {}", id.warp_in_block), id.warp_in_block)?;
        self.waits.clear();
        Ok(())
    }

    /// Begins a block on a multiprocessor, in place of a launch and its block.
    pub(super) fn block_on(
        &mut self,
        sm: u32,
        source: &ExportSource<'_>,
        info: &LaunchInfo,
        id: &StreamId,
    ) -> Result<(), ExportError> {
        let device = match self.device {
            Some(device) => device,
            None => self.track(None, source.trace().metadata().device.name.clone(), 0)?,
        };
        self.device = Some(device);
        let parent = match self.sms.get(&sm) {
            Some(parent) => *parent,
            None => self.track(Some(device), format!("SM {sm}"), sm)?,
        };
        self.sms.insert(sm, parent);
        let [x, y, z] = id.block;
        let name = format!("{} block {x},{y},{z}", source.launch_name(info));
        // Tracks are numbered in the order of creation: by launch and block.
        let rank = u32::try_from(self.last_track).unwrap_or(u32::MAX);
        self.block = self.track(Some(parent), name, rank)?;
        Ok(())
    }

    pub(super) fn block_ran(&mut self, ran: &Ran<'_>) -> Result<(), ExportError> {
        self.ran(self.block, ran)?;
        self.end(self.block, ran.lasts.end)
    }

    pub(super) fn warp_runs(&mut self, ran: &Ran<'_>) -> Result<(), ExportError> {
        self.ran(self.warp, ran)
    }

    pub(super) fn warp_ran(&mut self, to: u64) -> Result<(), ExportError> {
        self.end(self.warp, to)
    }

    /// Marks the start of a warp without a known end.
    pub(super) fn unended(&mut self, at: u64) -> Result<(), ExportError> {
        let (track_uuid, name) = (Some(self.warp), Some(UNENDED.to_owned()));
        self.event(at, TrackEvent { r#type: Some(INSTANT), track_uuid, name, ..TrackEvent::default() })
    }

    pub(super) fn enter(&mut self, name: &str, event: u64) -> Result<(), ExportError> {
        let (track_uuid, name_iid) = (Some(self.warp), self.name(name)?);
        let begin = TrackEvent { r#type: Some(SLICE_BEGIN), track_uuid, name_iid, ..TrackEvent::default() };
        self.event(event, begin)
    }

    pub(super) fn leave(&mut self, to: u64) -> Result<(), ExportError> {
        self.end(self.warp, to)
    }

    pub(super) fn run(
        &mut self,
        source: &ExportSource<'_>,
        run: &EventRun,
        lasts: Range<u64>,
    ) -> Result<(), ExportError> {
        let EventRun { event, count, .. } = *run;
        let info = source.location(event.location);
        let mut arguments = vec![
            number(LANES, event.mask.count_ones().into()),
            DebugAnnotation {
                name_iid: Some(MASK),
                pointer_value: Some(event.mask.into()),
                ..DebugAnnotation::default()
            },
            number(COUNT, count),
            number(LOCATION, event.location.into()),
        ];
        if let Some(info) = info {
            if let Some(file) = self.files.get(&info.file) {
                arguments.push(DebugAnnotation {
                    name_iid: Some(FILE),
                    string_value_iid: Some(*file),
                    ..DebugAnnotation::default()
                });
            }
            if info.line > 0 {
                arguments.push(number(LINE, info.line.into()));
            }
        }
        let name_iid = match info {
            Some(info) => Some(info.id.into()),
            None => self.name(&source.label(event.location))?,
        };
        let track_uuid = Some(self.warp);
        self.event(
            lasts.start,
            TrackEvent {
                r#type: Some(SLICE_BEGIN),
                track_uuid,
                name_iid,
                debug_annotations: arguments,
                ..TrackEvent::default()
            },
        )?;
        self.end(self.warp, lasts.end)
    }

    /// Writes a completed wait of lanes of the warp. `lasts` may overlap other waits.
    pub(super) fn wait(
        &mut self,
        source: &ExportSource<'_>,
        wait: &Wait,
        lasts: Range<u64>,
    ) -> Result<(), ExportError> {
        // Slices of a track nest, so overlapping waits use several tracks of one name, drawn as one.
        let free = self.waits.iter().position(|(_, end)| *end <= lasts.start);
        let at = match free {
            Some(at) => at,
            None => {
                let track = self.track(Some(self.warp), "waits".to_owned(), 0)?;
                self.waits.push((track, 0));
                self.waits.len() - 1
            }
        };
        self.waits[at].1 = lasts.end;
        let track = self.waits[at].0;
        let name_iid = match source.location(wait.location) {
            Some(info) => Some(info.id.into()),
            None => self.name(&source.label(wait.location))?,
        };
        let lanes = number(LANES, wait.lanes.count_ones().into());
        let mask = Some(wait.lanes.into());
        let mask =
            DebugAnnotation { name_iid: Some(MASK), pointer_value: mask, ..DebugAnnotation::default() };
        let begin = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            name_iid,
            categories: vec![WAIT.to_owned()],
            debug_annotations: vec![lanes, mask, number(LOCATION, wait.location.into())],
            ..TrackEvent::default()
        };
        self.event(lasts.start, begin)?;
        self.end(track, lasts.end)
    }

    /// Writes the load of a multiprocessor. Call it after all blocks.
    pub(super) fn load(&mut self, sm: u32, load: &Load) -> Result<(), ExportError> {
        let Some(parent) = self.sms.get(&sm).copied() else { return Ok(()) };
        let said = |what: &str| {
            format!("{what}, in the mean over each {} ns; of the warps that were exported", load.width())
        };
        self.counter(parent, ("warps", said("Warps that run here"), -2), &load.warps())?;
        let lanes = load.lanes();
        if lanes.is_empty() {
            return Ok(());
        }
        self.counter(parent, ("active lanes", said("Active lanes of all warps here"), -1), &lanes)
    }

    /// Writes a launch by the host's clocks. Launches of a lane do not overlap. Lanes are numbered from 0.
    pub(super) fn on_host(
        &mut self,
        source: &ExportSource<'_>,
        info: &LaunchInfo,
        lane: u32,
        lasts: Range<u64>,
    ) -> Result<(), ExportError> {
        let host = match self.host {
            Some(host) => host,
            None => self.track(None, "host".to_owned(), 0)?,
        };
        self.host = Some(host);
        let track = match self.host_lanes.get(lane as usize) {
            Some(track) => *track,
            None => {
                let track = self.track(Some(host), "launches".to_owned(), lane)?;
                self.host_lanes.push(track);
                track
            }
        };
        let (kernel, launch) = (source.kernel(info), info.number());
        let ran = Ran {
            kernel,
            launch,
            lasts: lasts.clone(),
            cycles: None,
            moved_to: None,
            follows: None,
            followed_by: Vec::new(),
        };
        self.ran(track, &ran)?;
        self.end(track, lasts.end)
    }

    pub(super) fn missing(&mut self, missing: &LossyWarps, next_event: u64) -> Result<(), ExportError> {
        let (name, why) = mark(missing);
        let why = DebugAnnotation {
            name_iid: Some(WHY),
            string_value: Some(why.to_owned()),
            ..DebugAnnotation::default()
        };
        let events = missing.events.map(|events| number(EVENTS, events));
        self.event(
            next_event,
            TrackEvent {
                r#type: Some(INSTANT),
                track_uuid: Some(self.warp),
                name: Some(name.to_owned()),
                debug_annotations: events.into_iter().chain([why]).collect(),
                ..TrackEvent::default()
            },
        )
    }
}
