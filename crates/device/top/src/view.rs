//! What the user has chosen to see: page, order, filter and selection, and the keys that change them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wakeai_host::Network;

use crate::columns::Column;
use crate::reading::{ConnectionId, Reading, SeenConnection};

/// The connections that are shown: those that meet every condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// One end lies in one of these networks; empty: any.
    pub networks: Vec<Network>,
    /// One end has one of these ports; empty: any.
    pub ports: Vec<u16>,
    /// The namespace has one of these names or inodes; empty: any.
    pub namespaces: Vec<String>,
    /// The process, an end, the algorithm, the namespace, the state or the limit contains this text; upper and lower
    /// case are equal. A network such as `10.0.0.0/8` stands for the connections with one end in it.
    pub text: String,
}

impl Filter {
    /// Whether the connection is shown.
    pub fn fits(&self, connection: &SeenConnection) -> bool {
        let has_port = |port: &u16| connection.addresses().any(|end| end.port() == *port);
        let is_named = |name: &String| {
            **name == *connection.namespace || *name == connection.id.netns.to_string()
        };
        (self.networks.is_empty()
            || self.networks.iter().any(|network| is_in(*network, connection)))
            && (self.ports.is_empty() || self.ports.iter().any(has_port))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(is_named))
            && (self.text.is_empty() || self.has_text(connection))
    }

    fn has_text(&self, connection: &SeenConnection) -> bool {
        if let (true, Ok(network)) = (self.text.contains('/'), self.text.parse::<Network>()) {
            return is_in(network, connection);
        }
        let text = self.text.to_lowercase();
        let columns = [
            Column::Process,
            Column::Local,
            Column::Peer,
            Column::Algorithm,
            Column::Namespace,
            Column::State,
            Column::Limit,
        ];
        columns.iter().any(|column| column.cell(connection, &[]).to_lowercase().contains(&text))
    }
}

/// Whether one end of the connection lies in the network.
fn is_in(network: Network, connection: &SeenConnection) -> bool {
    connection.addresses().any(|end| network.contains(end.ip()))
}

/// The page on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// A row per connection.
    #[default]
    Table,
    /// One connection's last minute.
    Detail,
    /// The agents and their peers.
    Agents,
    /// The keys.
    Help,
}

/// What the caller has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing, or to draw again.
    Draw,
    /// To end.
    Quit,
    /// To stop showing new readings, or to continue.
    Hold,
    /// Replay: to go this many readings forward; backward if it is negative.
    Step(i32),
    /// Replay: to go to the first reading.
    First,
    /// Replay: to go to the last reading.
    Last,
    /// Replay: to play twice as fast.
    Faster,
    /// Replay: to play at half the speed.
    Slower,
    /// Replay: to play backward or forward.
    Turn,
}

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The connections that are shown.
    pub filter: Filter,
    /// The column by which the rows are sorted.
    pub sort: Column,
    /// Whether the rows are in the opposite of the column's usual order.
    pub reversed: bool,
    /// The page on the screen.
    pub page: Page,
    /// Whether the user types the text of the filter.
    pub typing: bool,
    /// The selected connection.
    pub selected: Option<ConnectionId>,
}

/// The number of rows that Page Up and Page Down go.
const PAGE_ROWS: isize = 10;

impl View {
    /// The connections that are shown, in the order of the rows.
    pub fn arrange<'a>(&self, reading: &'a Reading) -> Vec<&'a SeenConnection> {
        let mut rows: Vec<_> =
            reading.connections.iter().filter(|found| self.filter.fits(found)).collect();
        // The sort is stable, so equal rows stay in the order of their identities.
        rows.sort_by(|a, b| {
            let order = self.sort.compare(a, b);
            if self.reversed { order.reverse() } else { order }
        });
        rows
    }

    /// Changes the view as the key says; `reading` is the one on the screen.
    pub fn handle_key(&mut self, key: KeyEvent, reading: &Reading) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        if self.typing {
            self.type_key(key.code);
            return Action::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.page == Page::Table => self.filter.text.clear(),
            KeyCode::Char('?' | 'h') => self.turn_to(Page::Help),
            KeyCode::Char('a') => self.turn_to(Page::Agents),
            KeyCode::Enter if self.page == Page::Table => {
                self.selected = self.present(reading).or_else(|| self.at(0, reading));
                self.page = if self.selected.is_some() { Page::Detail } else { Page::Table };
            }
            KeyCode::Esc | KeyCode::Enter => self.page = Page::Table,
            KeyCode::Char('/') => (self.typing, self.page) = (true, Page::Table),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('S') => self.sort = self.sort.previous(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char(' ') => return Action::Hold,
            KeyCode::Up | KeyCode::Char('k') => self.go(-1, reading),
            KeyCode::Down | KeyCode::Char('j') => self.go(1, reading),
            KeyCode::PageUp => self.go(-PAGE_ROWS, reading),
            KeyCode::PageDown => self.go(PAGE_ROWS, reading),
            KeyCode::Left => return Action::Step(-1),
            KeyCode::Right => return Action::Step(1),
            KeyCode::Home => return Action::First,
            KeyCode::End => return Action::Last,
            KeyCode::Char('+') => return Action::Faster,
            KeyCode::Char('-') => return Action::Slower,
            KeyCode::Char('b') => return Action::Turn,
            _ => {}
        }
        Action::Draw
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.text.clear();
            }
            KeyCode::Backspace => drop(self.filter.text.pop()),
            KeyCode::Char(letter) => self.filter.text.push(letter),
            _ => {}
        }
    }

    fn turn_to(&mut self, page: Page) {
        self.page = if self.page == page { Page::Table } else { page };
    }

    /// The selected connection, if it is shown.
    fn present(&self, reading: &Reading) -> Option<ConnectionId> {
        self.selected.filter(|id| reading.find(*id).is_some_and(|found| self.filter.fits(found)))
    }

    fn at(&self, row: usize, reading: &Reading) -> Option<ConnectionId> {
        self.arrange(reading).get(row).map(|connection| connection.id)
    }

    /// Moves the selection by this many rows.
    fn go(&mut self, by: isize, reading: &Reading) {
        let rows = self.arrange(reading);
        let last = rows.len().saturating_sub(1);
        let present = rows.iter().position(|row| Some(row.id) == self.selected);
        let row = present.map_or(0, |row| row.saturating_add_signed(by).min(last));
        self.selected = rows.get(row).map(|row| row.id);
    }
}
