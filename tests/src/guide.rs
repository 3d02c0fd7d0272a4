//! The blocks of a guide, which a test runs as they are printed.

/// A fenced block: the machine on which it runs, and its commands.
pub struct Block {
    pub machine: &'static str,
    pub commands: String,
}

/// The blocks of a guide in their order. Each begins with "```sh MACHINE"; only "```text", what a command has printed, is not
/// run.
pub fn blocks(guide: &'static str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.trim_start().strip_prefix("```") else { continue };
        let commands: Vec<_> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        if kind == "text" {
            continue;
        }
        let machine = kind.strip_prefix("sh ").expect("a block without a machine is not run");
        blocks.push(Block { machine, commands: commands.join("\n") });
    }
    blocks
}
