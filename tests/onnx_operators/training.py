"""Steps of optimizers, which ONNX Runtime runs in its training builds only: the results are those of the formulas."""
from math import sqrt

TRAINING = "ai.onnx.preview.training"


def operands(g, lists):
    """Learning rate, count of steps, and for each variable its value, gradient and `lists` states."""
    g.version = 1
    dtype = g.one_of(["float32", "float64"])
    rate, count = g.tensor(dtype, [], "positive"), g.given("int64", [], [g.integer(0, 3)])
    variables = []
    for _ in range(g.integer(1, 2)):
        shape = g.shape(0, 3)
        variables.append([g.tensor(dtype, shape, "small") for _ in range(2)] + [g.tensor(dtype, shape, "positive") for _ in range(lists)])
    return rate, count, variables


def finish(g, rate, count, variables, step, attributes):
    inputs = [rate, count] + [variable[k] for k in range(len(variables[0])) for variable in variables]
    results = [list(zip(*(step(*items) for items in zip(*(part.data for part in variable))))) for variable in variables]
    outputs = len(variables[0]) - 1
    g.node(inputs, count=outputs * len(variables), domain=TRAINING, tolerance=(1e-4, 1e-4), **attributes)
    for k in range(outputs):
        for variable, result in zip(variables, results):
            g.expect(variable[0].dtype, variable[0].shape, result[k] if result else [])


def adagrad(g):
    rate, count, variables = operands(g, 1)
    attributes = g.maybe(0.6, decay_factor=0.25, epsilon=0.125, norm_coefficient=0.5)
    decay, epsilon, norm = (attributes.get(name, otherwise) for name, otherwise in
                            (("decay_factor", 0.0), ("epsilon", 1e-6), ("norm_coefficient", 0.0)))

    def step(x, gradient, squares):
        gradient += norm * x
        squares += gradient * gradient
        return x - rate.data[0] / (1 + count.data[0] * decay) * gradient / (sqrt(squares) + epsilon), squares
    finish(g, rate, count, variables, step, attributes)


def adam(g):
    rate, count, variables = operands(g, 2)
    attributes = g.maybe(0.6, alpha=0.75, beta=0.875, epsilon=0.125, norm_coefficient=0.5, norm_coefficient_post=0.25)
    alpha, beta, epsilon, norm, post = (attributes.get(name, otherwise) for name, otherwise in (
        ("alpha", 0.9), ("beta", 0.999), ("epsilon", 1e-6), ("norm_coefficient", 0.0), ("norm_coefficient_post", 0.0)))
    t = count.data[0]
    adjusted = rate.data[0] * sqrt(1 - beta ** t) / (1 - alpha ** t) if t > 0 else rate.data[0]

    def step(x, gradient, momentum, squares):
        gradient += norm * x
        momentum = alpha * momentum + (1 - alpha) * gradient
        squares = beta * squares + (1 - beta) * gradient * gradient
        return (1 - post) * (x - adjusted * momentum / (sqrt(squares) + epsilon)), momentum, squares
    finish(g, rate, count, variables, step, attributes)


def momentum(g):
    rate, count, variables = operands(g, 1)
    attributes = {"alpha": g.integer(0, 7) / 8, "beta": g.integer(0, 8) / 8, "norm_coefficient": g.integer(0, 2) / 4,
                  "mode": g.one_of(["standard", "nesterov"])}
    factor = attributes["beta"] if count.data[0] > 0 else 1.0

    def step(x, gradient, speed):
        gradient += attributes["norm_coefficient"] * x
        speed = attributes["alpha"] * speed + factor * gradient
        change = speed if attributes["mode"] == "standard" else gradient + attributes["alpha"] * speed
        return x - rate.data[0] * change, speed
    finish(g, rate, count, variables, step, attributes)


OPERATORS = {f"{TRAINING}.{name}": ((17,), build) for name, build in
             (("Adagrad", adagrad), ("Adam", adam), ("Momentum", momentum))}
