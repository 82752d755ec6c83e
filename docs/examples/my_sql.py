"""A format of ``bench model export``: SQL for models of a single tree."""

from bench_core import UsageError, hookimpl
from bench_core.serving import VECTOR, Finish, Program


def write_sql(model, output):
    """SQL: the score of a single tree, an expression over the columns."""
    program = model.program
    if not isinstance(program, Program) or program.trees.trees != 1 or len(program.steps) > 1:
        raise UsageError("sql: not a single tree; take another learner, such as cost-tree")
    step, trees = program.steps[0], program.trees
    finish = step.finish or Finish((0.0,))
    linked = program.outputs > 1 or step.reads or finish.link != "identity" or finish.onward
    if linked or any(column.kind != "number" or column.offset for column in model.encodings):
        raise UsageError("sql: not one score of numbers alone; take --format folder")

    def leaf(value):
        if trees.output[0] == VECTOR:  # values are numbers of vectors
            value = trees.vectors[int(value), 0]
        score = step.bias[0] + step.weights[0] * value
        return finish.slope * (finish.base[0] + score / finish.rounds) + finish.intercept

    def case(node):
        if trees.feature[node] < 0:
            return repr(float(leaf(trees.value[node])))
        name = '"{}"'.format(model.names[trees.feature[node]].replace('"', '""'))
        left = f"{name} <= {float(trees.threshold[node])!r}"
        if trees.missing_left[node]:
            left += f" OR {name} IS NULL"
        then, other = case(trees.left[node]), case(trees.right[node])
        return f"CASE WHEN {left}\n THEN {then}\n ELSE {other} END"

    (output / "model.sql").write_text(case(0) + "\n", encoding="utf-8")


@hookimpl
def bench_exports():
    return {"sql": write_sql}
