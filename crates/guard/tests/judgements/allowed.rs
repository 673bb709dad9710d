//! What a person has allowed is exempt, and nothing besides.

use triphammer_guard::{Allow, classify_allowing};

#[test]
fn an_entry_exempts_the_commands_that_it_matches_and_no_line() {
    let allow =
        Allow::read(["npm publish", "wrangler deploy", "git push --force-with-lease", "cargo publish -p x"])
            .expect("readable");
    for (line, refused) in [
        ("npm publish", false),
        ("npm publish --access public", false),
        ("NPM_TOKEN=x npm publish", false),
        ("sudo npm publish", false),
        ("sh -c 'npm publish'", false),
        ("cd pkg && npm publish && echo ok", false),
        ("npx wrangler deploy", false),
        ("git push --force-with-lease origin x", false),
        ("npm publish && rm -rf /", true),
        ("rm -rf / && npm publish", true),
        ("npm publish; cargo publish", true),
        ("npm publish $(rm -rf /)", true),
        ("npm publish > /etc/passwd", true),
        ("npm --prefix x publish", true),
        ("npm unpublish", true),
        ("cargo publish -p x", false),
        ("cargo publish", true),
        ("cargo publish -p y", true),
        ("pnpm publish", true),
        ("git push --force", true),
        ("git push origin --force-with-lease", true),
        ("echo npm publish | sh; npm unpublish x", true),
        ("wrangler deployx; wrangler deploy; wrangler delete", true),
    ] {
        let judgement = classify_allowing(line, &super::place(), &allow);
        assert_eq!(judgement.refused(), refused, "{line}: {judgement:?}");
    }
}
