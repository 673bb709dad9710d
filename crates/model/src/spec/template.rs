//! The draft that `spec new` writes.

use super::{Spec, text};

const PLACEHOLDER: &str = "Say in one imperative sentence what to build.";

impl Spec {
    /// Whether the goal is still the draft's, which asks for one.
    pub fn is_unfilled(&self) -> bool {
        self.goal.trim() == PLACEHOLDER
    }
}

/// A commented draft for a spec called `name`, ready to be filled in. An empty `goal` gives a sentence that asks
/// for one. The text parses as it is.
pub fn template(name: &str, goal: &str) -> String {
    let goal = text::paragraphs(goal);
    let goal = if goal.is_empty() { PLACEHOLDER } else { &goal };
    let goal: Vec<String> = goal.split('\n').map(text::protect_line).collect();
    let goal = goal.join("\n");
    // The name stands inside a comment.
    let name = if text::is_name(name) && !name.contains("--") { name } else { "NAME" };
    format!(
        r#"---
status: draft             # `triphammer spec lock` makes it `locked`; only then does it run
# attempts: 5             # 1 to 50; the breaker needs 3 to speak
# budget: 4h              # wall clock
# max_cost: 5.00          # USD
# max_tokens: 2000000
# gates: [rust, honesty]  # packs; default: found from the files in the workspace
# protect: ["tests/**"]   # files that the agent must not change
# allow: [tests-removed]  # default: fewer tests are a finding
# judge: auto             # auto, required or off
# agent: claude           # a list is a fallback chain
# workspace: new          # a path from the home, or an empty folder; default: the home itself
---
# Goal
<!-- The first sentence is the goal line. More may follow, in paragraphs of plain text. -->
{goal}

## Acceptance
<!-- What must be true when it is done, for the agent (and a judge) to read:
- `1994` gives `MCMXCIV`
-->

## Checks
<!-- Commands that fail now and must exit 0 when it is done. `triphammer spec check specs/{name}.md` tries them:
- converts: cargo run -q -- 1994 | grep -qx MCMXCIV
-->

## Keep green
<!-- Commands that exit 0 now and must still do so:
- builds: cargo build
-->

## Constraints
<!-- What must hold on the way:
- no new dependencies
-->

## Non-goals
<!-- What must not be done:
- lower-case numerals
-->
"#
    )
}
