//! Plain tables of the page, declared by columns.

use askama::Template;

#[derive(Debug, Template)]
#[template(path = "table.html")]
pub(crate) struct PageTable {
    columns: Vec<Head>,
    rows: Vec<PageRow>,
    pub(crate) more: usize,
}

impl PageTable {
    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[derive(Debug)]
struct PageRow {
    /// Indices of the row's kernels, if the choice of a kernel filters the row.
    kernels: Option<String>,
    cells: Vec<String>,
}

#[derive(Debug)]
struct Head {
    text: &'static str,
    /// Text above a cell on narrow screens.
    label: &'static str,
    title: &'static str,
    is_right: bool,
    style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    Plain,
    Bold,
    Code,
    Html,
}

type Cell<'a, R> = Box<dyn Fn(&R) -> String + 'a>;

/// Columns of a table with rows `R`. The first column contains row headers.
pub(crate) struct Columns<'a, R>(Vec<(Head, Cell<'a, R>)>);

impl<'a, R> Columns<'a, R> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    fn column(
        mut self,
        text: &'static str,
        is_right: bool,
        style: Style,
        cell: impl Fn(&R) -> String + 'a,
    ) -> Self {
        self.0.push((Head { text, label: text, title: "", is_right, style }, Box::new(cell)));
        self
    }

    pub(crate) fn text(self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(head, false, Style::Plain, cell)
    }

    pub(crate) fn code(self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(head, false, Style::Code, cell)
    }

    pub(crate) fn number(self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(head, true, Style::Plain, cell)
    }

    pub(crate) fn bold(self, head: &'static str, cell: impl Fn(&R) -> String + 'a) -> Self {
        self.column(head, true, Style::Bold, cell)
    }

    /// Adds a column of rendered templates.
    pub(crate) fn html<T: Template>(self, head: &'static str, cell: impl Fn(&R) -> T + 'a) -> Self {
        // Rendering to a string does not fail.
        self.column(head, false, Style::Html, move |row| cell(row).render().unwrap_or_default())
    }

    pub(crate) fn label(mut self, label: &'static str) -> Self {
        self.0.iter_mut().last().into_iter().for_each(|(head, _)| head.label = label);
        self
    }

    /// Sets the tooltip of the last column's head.
    pub(crate) fn title(mut self, title: &'static str) -> Self {
        self.0.iter_mut().last().into_iter().for_each(|(head, _)| head.title = title);
        self
    }

    pub(crate) fn when(self, exist: bool, more: impl FnOnce(Self) -> Self) -> Self {
        if exist { more(self) } else { self }
    }

    /// Builds the table of the first `limit` rows. `kernels` returns the kernels by which a row is filtered.
    pub(crate) fn table(
        self,
        rows: impl ExactSizeIterator<Item = R>,
        limit: usize,
        kernels: impl Fn(&R) -> Option<String>,
    ) -> PageTable {
        let more = rows.len().saturating_sub(limit);
        let row = |row: R| PageRow {
            kernels: kernels(&row),
            cells: self.0.iter().map(|(_, cell)| cell(&row)).collect(),
        };
        let rows = rows.take(limit).map(row).collect();
        PageTable { columns: self.0.into_iter().map(|(head, _)| head).collect(), rows, more }
    }
}
