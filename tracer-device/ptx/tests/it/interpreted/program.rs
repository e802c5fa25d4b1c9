//! Program of each lane of the test kernel: a list of words, and the expected result.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Words of a thread's list. The last word is 0.
pub(crate) const LENGTH: usize = 48;

/// Locations with their number of events. Adjacent locations differ.
pub(crate) type Sequence = Vec<(u16, u64)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) words: Vec<u16>,
    pub(crate) sequence: Sequence,
    /// The thread's number in the kernel's output.
    pub(crate) result: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// Whether the kernel calls a function for operation 4.
    pub(crate) calls: bool,
    /// Ticks of the marker that stands for many.
    pub(crate) many: u16,
    pub(crate) length: usize,
    /// Whether most lanes of a warp have the same list.
    pub(crate) alike: bool,
    /// Whether the iterations of counted loops differ between lanes.
    pub(crate) loops: bool,
}

pub(crate) fn below(random: &mut ChaCha8Rng, end: u64) -> u64 {
    random.next_u64() % end
}

pub(crate) fn push(sequence: &mut Sequence, location: u16, count: u64) {
    match sequence.last_mut() {
        _ if count == 0 => {}
        Some((last, total)) if *last == location => *total += count,
        _ => sequence.push((location, count)),
    }
}

pub(crate) fn lanes(random: &mut ChaCha8Rng, mix: Mix, threads: u32) -> Vec<Lane> {
    let mut lanes = Vec::new();
    let mut common = words(random, mix);
    for thread in 0..threads {
        if thread % 32 == 0 {
            common = words(random, mix);
        }
        let alike = mix.alike && below(random, 8) != 0;
        let words = if alike { common.clone() } else { words(random, mix) };
        lanes.push(interpret(words, mix));
    }
    lanes
}

pub(crate) fn lane(words: &[u16], mix: Mix) -> Lane {
    let mut list = words.to_vec();
    list.resize(LENGTH, 0);
    interpret(list, mix)
}

fn words(random: &mut ChaCha8Rng, mix: Mix) -> Vec<u16> {
    let mut words = Vec::new();
    while words.len() + 4 < mix.length.min(LENGTH) {
        // Few kinds, so that lanes reconverge; repetitions, so that runs grow.
        let operation = match below(random, if mix.loops { 14 } else { 10 }) {
            0..=2 => 1,
            3 => 2,
            4 => 3,
            5 => 4,
            6 if below(random, 4) == 0 => 5,
            7 if below(random, 4) == 0 => 7,
            6..=7 => 9,
            8 => 11,
            9 => 10,
            10..=11 => 6,
            _ => 8,
        };
        words.push(operation);
        match operation {
            4 => words.push(below(random, 9) as u16),
            5 | 7 => words.push(u16::from(below(random, 8) == 0)),
            11 => words.push(below(random, 2) as u16),
            6 => {
                let trips = [0, 1, 2, 5, 8, below(random, 12)][below(random, 6) as usize];
                let many = [0, 0, 0, 1, 4, 7][below(random, 6) as usize];
                words.extend([trips as u16, many]);
            }
            8 => words.extend([below(random, 4) as u16, below(random, 4) as u16]),
            _ => {
                for _ in 0..below(random, 3) {
                    words.push(operation);
                }
            }
        }
    }
    words.truncate(mix.length.min(LENGTH) - 1);
    words.resize(LENGTH, 0);
    words
}

/// Returns the expected result of a list. Written independently of the kernel's text.
fn interpret(words: Vec<u16>, mix: Mix) -> Lane {
    let mut sequence = Sequence::new();
    let mut hash = 17_u32;
    let mut at = 0;
    let next = |at: &mut usize| {
        *at += 1;
        words.get(*at - 1).copied().unwrap_or_default()
    };
    let mix_in =
        |hash: &mut u32, location: u16| *hash = hash.wrapping_mul(31).wrapping_add(u32::from(location));
    // The kernel finally adds the difference of a number kept in two memories, which is 0.
    let result = loop {
        match next(&mut at) {
            0 => break hash,
            1 => {
                push(&mut sequence, 1, 1);
                mix_in(&mut hash, 1);
            }
            2 => {
                push(&mut sequence, 2, 2);
                push(&mut sequence, 3, 1);
                mix_in(&mut hash, 2);
                mix_in(&mut hash, 2);
            }
            3 => {
                push(&mut sequence, 65535, 1);
                mix_in(&mut hash, 65535);
            }
            4 => {
                let trips = next(&mut at);
                if mix.calls {
                    push(&mut sequence, 40, 1);
                    if trips == 8 {
                        break hash;
                    }
                    push(&mut sequence, 41, u64::from(trips));
                    (0..trips).for_each(|_| mix_in(&mut hash, 41));
                    if trips <= 6 {
                        push(&mut sequence, 42, 1);
                        mix_in(&mut hash, 42);
                    }
                }
            }
            5 => {
                push(&mut sequence, 5, 1);
                if next(&mut at) & 1 == 1 {
                    break hash;
                }
                push(&mut sequence, 5, 1);
            }
            6 => {
                let (trips, many) = (next(&mut at), next(&mut at));
                push(&mut sequence, 20, u64::from(trips) + u64::from(many) * u64::from(mix.many));
                (0..trips).for_each(|_| mix_in(&mut hash, 20));
            }
            7 => {
                if next(&mut at) & 1 == 1 {
                    break hash;
                }
                push(&mut sequence, 7, 1);
            }
            8 => {
                let (outer, factor) = (next(&mut at), next(&mut at));
                for remaining in (0..outer).rev() {
                    push(&mut sequence, 30, 1);
                    mix_in(&mut hash, 30);
                    let inner = (remaining * factor) & 7;
                    push(&mut sequence, 31, u64::from(inner));
                    (0..inner).for_each(|_| mix_in(&mut hash, 31));
                }
            }
            11 => {
                push(&mut sequence, 60, 1);
                mix_in(&mut hash, 60);
                if next(&mut at) != 1 {
                    push(&mut sequence, 60, 1);
                    mix_in(&mut hash, 61);
                }
            }
            9 => {
                push(&mut sequence, 50, 1);
                mix_in(&mut hash, 51);
            }
            _ => {
                push(&mut sequence, 50, 2);
                mix_in(&mut hash, 50);
                mix_in(&mut hash, 51);
            }
        }
    };
    Lane { words, sequence, result }
}

pub(crate) fn begins(whole: &Sequence, beginning: &Sequence) -> bool {
    let Some(((location, count), before)) = beginning.split_last() else { return true };
    whole.get(..before.len()) == Some(before)
        && whole.get(before.len()).is_some_and(|(found, total)| found == location && count <= total)
}

/// Returns true if a sequence ends with another, whose first location may have fewer events.
pub(crate) fn ends(whole: &Sequence, end: &Sequence) -> bool {
    let reversed = |sequence: &Sequence| sequence.iter().rev().copied().collect();
    begins(&reversed(whole), &reversed(end))
}
