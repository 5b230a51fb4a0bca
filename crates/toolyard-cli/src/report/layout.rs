//! Which columns a timeline has, and how wide they are, so that each row fits the terminal (KT-13).

/// What the rows need at most, in columns of the terminal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Needs {
    pub(super) run: usize,
    pub(super) id: usize,
    pub(super) tool: usize,
    pub(super) class: usize,
    pub(super) waited: usize,
    pub(super) ran: usize,
    /// The longest remark; 0 if there is none.
    pub(super) remark: usize,
}

/// The width of each column; one of width 0 is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) run: usize,
    pub(super) id: usize,
    pub(super) tool: usize,
    pub(super) class: usize,
    pub(super) bar: usize,
    pub(super) waited: usize,
    pub(super) ran: usize,
    /// Remarks beside their row; longer ones stand on a line of their own.
    pub(super) beside: usize,
}

/// Between two columns.
pub(super) const GAP: usize = 2;

/// Before remarks on a line of their own.
pub(super) const INDENT: usize = 5;

const ID_MAX: usize = 22;
const TOOL_MAX: usize = 26;

/// A bar is at most so wide, and at least so wide while there is something to leave out.
const BAR: std::ops::RangeInclusive<usize> = 16..=48;

/// Remarks have so much room beside their row, or none; the bar leaves more to them where it can.
const REMARK_MIN: usize = 29;

/// What is given up, one after the other, until the bar has room.
const STEPS: [fn(&mut Layout); 6] = [
    |layout| (layout.id, layout.tool) = (layout.id.min(12), layout.tool.min(14)),
    |layout| layout.class = 0,
    |layout| layout.waited = 0,
    |layout| layout.run = 0,
    |layout| layout.ran = 0,
    |layout| (layout.id, layout.tool) = (layout.id.min(6), 0),
];

impl Layout {
    /// The layout for a terminal of so many columns.
    pub(super) fn new(needs: Needs, columns: usize) -> Self {
        let Needs { run, class, waited, ran, .. } = needs;
        let (id, tool) = (needs.id.min(ID_MAX), needs.tool.min(TOOL_MAX));
        let mut layout = Self { run, id, tool, class, bar: 0, waited, ran, beside: 0 };
        let room = |remark: usize| if remark == 0 { 0 } else { GAP + remark };
        let free = columns.saturating_sub(layout.taken());
        if free >= BAR.start() + room(needs.remark.min(REMARK_MIN)) {
            layout.bar = free.saturating_sub(room(needs.remark)).clamp(*BAR.start(), *BAR.end());
            layout.beside = (free - layout.bar).saturating_sub(GAP);
            return layout;
        }
        for step in STEPS {
            if columns.saturating_sub(layout.taken()) >= *BAR.start() {
                break;
            }
            step(&mut layout);
        }
        layout.bar = columns.saturating_sub(layout.taken()).min(*BAR.end());
        layout
    }

    /// What all columns but the bar take, with the gaps.
    fn taken(&self) -> usize {
        let beside_bar = [self.run, self.id, self.tool, self.class, self.waited, self.ran];
        beside_bar.iter().filter(|width| **width > 0).map(|width| width + GAP).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs { run: 3, id: 6, tool: 10, class: 6, waited: 7, ran: 7, remark: 30 };

    /// KT-13
    #[test]
    fn a_narrow_terminal_has_fewer_columns() {
        let wide = Layout::new(NEEDS, 200);
        assert_eq!((wide.bar, wide.class), (48, 6));
        assert!(wide.beside >= 30, "{wide:?}");
        let usual = Layout::new(NEEDS, 100);
        assert_eq!((usual.bar, usual.beside), (17, 30));
        let long = Layout::new(Needs { remark: 70, ..NEEDS }, 105);
        assert_eq!((long.bar, long.beside), (16, 36));
        let narrow = Layout::new(NEEDS, 80);
        assert_eq!((narrow.bar, narrow.class, narrow.beside), (29, 6, 0));
        let least = Layout::new(NEEDS, 20);
        assert_eq!((least.id, least.tool, least.run, least.bar), (6, 0, 0, 12));
        for columns in 0..=200 {
            let layout = Layout::new(NEEDS, columns);
            assert!(layout.taken() + layout.bar <= columns.max(NEEDS.id + GAP), "{columns}: {layout:?}");
        }
    }

    /// KT-13: without remarks the bar has their room.
    #[test]
    fn without_remarks_there_is_one_line_a_row() {
        let layout = Layout::new(Needs { remark: 0, ..NEEDS }, 70);
        assert_eq!((layout.bar, layout.beside), (19, 0));
    }
}
