//! Places labels of edges without overlaps.

/// Width of a character and height of a line.
const CHARACTER: f64 = 6.6;
const LINE: f64 = 12.0;
/// Distances that a label may move, in lines.
const MOVES: [f64; 5] = [0.0, 1.0, -1.0, 2.0, -2.0];

pub(super) struct Label {
    pub(super) text: String,
    pub(super) at: [f64; 2],
    /// Of two labels that overlap, the one with the lower weight moves.
    pub(super) weight: u64,
}

impl Label {
    fn meets(&self, other: &Self) -> bool {
        let width = |label: &Self| label.text.chars().count() as f64 * CHARACTER;
        let [x, y] = [0, 1].map(|axis| (self.at[axis] - other.at[axis]).abs());
        x < (width(self) + width(other)) / 2.0 && y < LINE
    }
}

/// Moves labels up or down so that they do not overlap. Clears the text of labels without a free position.
pub(super) fn spread(labels: &mut [Label]) {
    let mut order: Vec<usize> = (0..labels.len()).filter(|&at| !labels[at].text.is_empty()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(labels[at].weight));
    let mut placed: Vec<usize> = Vec::new();
    for at in order {
        let y = labels[at].at[1];
        let has_room = MOVES.iter().any(|lines| {
            labels[at].at[1] = y + lines * LINE;
            placed.iter().all(|&other| !labels[at].meets(&labels[other]))
        });
        if has_room {
            placed.push(at);
        } else {
            labels[at].text.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_stands_on_another() {
        let label = |weight: u64| Label { text: format!("{weight}%"), at: [100.0, 50.0], weight };
        let mut labels: Vec<Label> = (1..=9).map(label).collect();
        labels.push(Label { at: [200.0, 50.0], ..label(1) });
        spread(&mut labels);
        let shown: Vec<&Label> = labels.iter().filter(|label| !label.text.is_empty()).collect();
        // The heaviest label and the isolated label do not move.
        assert_eq!((labels[8].at, labels[9].at), ([100.0, 50.0], [200.0, 50.0]));
        assert_eq!(shown.len(), MOVES.len() + 1);
        for (number, one) in shown.iter().enumerate() {
            assert!(shown[..number].iter().all(|other| !one.meets(other)), "{}", one.text);
        }
    }
}
