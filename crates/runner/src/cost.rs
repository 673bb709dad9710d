//! What an agent's call cost: one order for all agents, so that a bound on money means the same with each.

use triphammer_llm::Prices;
use triphammer_model::{CostBy, MicroUsd, Receipt};

/// Settles what a receipt says of money. `asked` is the model that is configured.
pub(crate) fn settle(receipt: &mut Receipt, asked: Option<&str>, prices: &Prices) {
    let (cost, by) = cost_of(receipt, asked, prices).unzip();
    (receipt.cost, receipt.cost_by) = (cost, by);
}

/// The user's prices go before a report, since agents' own sums come from tables that nobody here can see; a report goes
/// before the built-in table, since it may know of discounts. What none of them tells is unknown, never nothing.
fn cost_of(receipt: &Receipt, asked: Option<&str>, prices: &Prices) -> Option<(MicroUsd, CostBy)> {
    let named = receipt.model.as_deref();
    // An agent that counts no tokens at all has used some nevertheless.
    let tokens = receipt.tokens.filter(|tokens| tokens.total() > 0);
    // Whoever prices a model may know it by the name under which it is asked for.
    let own = [named, asked].into_iter().flatten().find_map(|model| prices.own(model));
    if let (Some(price), Some(tokens)) = (own, tokens) {
        return Some((price.of(tokens), CostBy::OwnPrices));
    }
    if let Some(cost) = receipt.cost {
        return Some((cost, CostBy::Reported));
    }
    let price = prices.listed(named.or(asked)?)?;
    Some((price.of(tokens?), CostBy::Prices { as_of: prices.as_of().to_owned() }))
}

#[cfg(test)]
mod tests {
    use triphammer_model::{Price, Tokens};

    use super::*;

    fn prices() -> Prices {
        let listed = "as_of = \"2026-03-21\"\n[prices]\n\"m-*\" = { input = 1, output = 1 }\n";
        let price = Price { input: MicroUsd::new(2_000_000), cached: MicroUsd::ZERO, output: MicroUsd::ZERO };
        Prices::from_toml(listed).unwrap().with([("m-own".to_owned(), price)])
    }

    #[test]
    fn each_cost_says_where_it_comes_from() {
        let table = || Some(CostBy::Prices { as_of: "2026-03-21".to_owned() });
        let (reported, own) = (|| Some(CostBy::Reported), || Some(CostBy::OwnPrices));
        for (what, named, asked, tokens, report, cost, by) in [
            ("a report", None, None, Some(7), Some(9), Some(9), reported()),
            ("a report of nothing", None, None, None, Some(0), Some(0), reported()),
            ("a report before the table", Some("m-1"), None, Some(7), Some(9), Some(9), reported()),
            ("the user's price before a report", Some("m-own"), None, Some(7), Some(9), Some(14), own()),
            ("by the name that was asked for", Some("x"), Some("m-own"), Some(7), Some(9), Some(14), own()),
            ("nothing to compute from", Some("m-own"), None, None, Some(9), Some(9), reported()),
            ("the table", Some("m-1"), None, Some(7), None, Some(7), table()),
            ("the table by what was asked for", None, Some("m-1"), Some(7), None, Some(7), table()),
            ("another model than was asked for", Some("x"), Some("m-1"), Some(7), None, None, None),
            ("no model", None, None, Some(7), None, None, None),
            ("no tokens", Some("m-1"), None, None, None, None, None),
            ("none counted", Some("m-own"), Some("m-1"), Some(0), None, None, None),
            ("nothing at all", None, None, None, None, None, None),
        ] {
            let mut receipt = Receipt {
                model: named.map(str::to_owned),
                tokens: tokens.map(|input| Tokens { input, ..Tokens::default() }),
                cost: report.map(MicroUsd::new),
                ..Receipt::default()
            };
            settle(&mut receipt, asked, &prices());
            assert_eq!((receipt.cost, receipt.cost_by), (cost.map(MicroUsd::new), by), "{what}");
        }
    }
}
