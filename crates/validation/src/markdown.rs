//! The page: headings, paragraphs and tables.

use std::fmt::Write as _;

/// A table; every row has as many cells as there are headings.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty one.
    pub fn new(headings: &[&str]) -> Self {
        Self { headings: headings.iter().map(|&h| h.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells.into());
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A page under construction.
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// A heading of level `level`.
    pub fn heading(&mut self, level: usize, text: &str) {
        self.block(&format!("{} {text}", "#".repeat(level)));
    }

    /// A paragraph, wrapped at 100 columns.
    pub fn paragraph(&mut self, text: &str) {
        self.block(&wrapped(text, "", ""));
    }

    /// A point of a list, wrapped at 100 columns.
    pub fn point(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}", wrapped(text, "- ", "  "));
    }

    /// Ends a list.
    pub fn end_points(&mut self) {
        self.text.push('\n');
    }

    /// Commands, as a block of code.
    pub fn commands(&mut self, commands: &[String]) {
        self.block(&format!("```\n{}\n```", commands.join("\n")));
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let mut lines = vec![line(&table.headings)];
        lines.push(format!("|{}", "---|".repeat(table.headings.len())));
        lines.extend(table.rows.iter().map(|row| line(row)));
        self.block(&lines.join("\n"));
    }

    /// A picture that lies beside the page.
    pub fn picture(&mut self, file: &str, says: &str) {
        self.block(&format!("![{says}]({file})"));
    }

    /// The page.
    pub fn finish(self) -> String {
        format!("{}\n", self.text.trim_end())
    }

    fn block(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push_str("\n\n");
    }
}

fn wrapped(text: &str, first: &str, further: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > 100 {
            lines.push(std::mem::replace(&mut line, further.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.join("\n")
}

/// `value` with `decimals` decimals.
pub fn number(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

/// The same, or a dash where there is none.
pub fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| number(value, decimals))
}

/// A deviation as signed percent.
pub fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Whether a bound was held.
pub fn held(holds: bool) -> String {
    (if holds { "yes" } else { "**no**" }).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_table() {
        let mut table = Table::new(&["a", "b"]);
        assert!(table.is_empty());
        table.row(["1".to_owned(), number(2.345, 1)]);
        let mut page = Page::default();
        page.table(&table);
        assert_eq!(page.finish(), "| a | b |\n|---|---|\n| 1 | 2.3 |\n");
    }

    #[test]
    fn paragraphs_are_wrapped_at_100_columns() {
        let mut page = Page::default();
        page.point(&"word ".repeat(30));
        let text = page.finish();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.starts_with("- word") && text.lines().nth(1).unwrap().starts_with("  word"));
    }

    #[test]
    fn percents_are_signed() {
        assert_eq!((percent(0.0312), percent(-0.2)), ("+3.1 %".to_owned(), "-20.0 %".to_owned()));
    }
}
