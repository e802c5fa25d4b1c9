//! Reference algorithm on whole buffers, for tests. It shares no code with the encoder and the decoder.

use super::EclParams;

/// State of both directions: the table, the hash and the bytes before the current position.
struct Model {
    params: EclParams,
    last: Vec<Option<usize>>,
    hash: usize,
    bytes: Vec<u8>,
}

impl Model {
    fn new(params: EclParams) -> Self {
        Self { params, last: vec![None; 1 << params.hash_bits], hash: 0, bytes: Vec::new() }
    }

    fn candidate(&self) -> Option<usize> {
        let window = 1 << self.params.window_bits;
        let r = self.bytes.len();
        let p = self.last[self.hash]?;
        let context_in_ring = r - p + 2 <= window;
        (p >= 2 && context_in_ring && self.bytes[p - 2..p] == self.bytes[r - 2..r]).then_some(p)
    }

    fn take(&mut self, byte: u8) {
        self.last[self.hash] = Some(self.bytes.len());
        self.hash = ((self.hash << self.params.shift) ^ usize::from(byte)) % self.last.len();
        self.bytes.push(byte);
    }
}

/// Compresses a whole stream with LZa2, from fresh state.
pub fn lza2_compress(params: EclParams, input: &[u8]) -> Vec<u8> {
    let mut model = Model::new(params);
    let mut output = Vec::new();
    while model.bytes.len() < input.len() {
        if let Some(p) = model.candidate() {
            let mut count = 0;
            while count < 255
                && model.bytes.len() < input.len() - 1
                && input[p + usize::from(count)] == input[model.bytes.len()]
            {
                model.take(input[model.bytes.len()]);
                count += 1;
            }
            output.push(count);
        }
        let literal = input[model.bytes.len()];
        model.take(literal);
        output.push(literal);
    }
    output
}

/// Decompresses a stream of [`lza2_compress`]. Returns `None` if a count has no literal after it.
pub fn lza2_decompress(params: EclParams, input: &[u8]) -> Option<Vec<u8>> {
    let mut model = Model::new(params);
    let mut input = input.iter().copied().peekable();
    while input.peek().is_some() {
        if let Some(p) = model.candidate() {
            let count = usize::from(input.next()?);
            for i in 0..count {
                model.take(model.bytes[p + i]);
            }
        }
        model.take(input.next()?);
    }
    Some(model.bytes)
}

/// Compresses a whole buffer with RLE.
pub fn rle_compress(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let mut literals = 1;
        while literals < 16 && literals < rest.len() && rest[literals] != rest[literals - 1] {
            literals += 1;
        }
        let last = rest[literals - 1];
        let repeats = rest[literals..].iter().take(15).take_while(|byte| **byte == last).count();
        output.push((repeats << 4 | (literals - 1)) as u8);
        output.extend_from_slice(&rest[..literals]);
        rest = &rest[literals + repeats..];
    }
    output
}

/// Decompresses a buffer of [`rle_compress`]. Returns `None` if the input ends inside a group.
pub fn rle_decompress(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let mut rest = input;
    while let Some((count, after)) = rest.split_first() {
        let (literals, repeats) = (usize::from(count & 0x0f) + 1, usize::from(count >> 4));
        let literals = after.get(..literals)?;
        output.extend_from_slice(literals);
        output.extend(std::iter::repeat_n(literals[literals.len() - 1], repeats));
        rest = &after[literals.len()..];
    }
    Some(output)
}
