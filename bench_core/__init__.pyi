"""The names of ``bench_core`` and where they live; loaded on first use."""

from .api import run as run
from .class_names import find_class as find_class
from .class_names import remember_class as remember_class
from .costs.bill import Acquired as Acquired
from .costs.bill import Bill as Bill
from .costs.bill import Prediction as Prediction
from .costs.cost_file import read_costs as read_costs
from .costs.model import CostModel as CostModel
from .costs.model import DiscountGroup as DiscountGroup
from .costs.model import Prices as Prices
from .costs.model import SensorPrices as SensorPrices
from .costs.model import price_list as price_list
from .costs.timing import Extractor as Extractor
from .costs.timing import Measured as Measured
from .costs.timing import cost_document as cost_document
from .costs.timing import measure as measure
from .data import Examples as Examples
from .data import Features as Features
from .data import Frames as Frames
from .data import Queries as Queries
from .data import Task as Task
from .datasets.publishers.download import Download as Download
from .datasets.publishers.fetch import Facts as Facts
from .errors import BenchError as BenchError
from .errors import InputError as InputError
from .errors import UsageError as UsageError
from .hookspecs import hookimpl as hookimpl
from .hookspecs import provide_datasets as provide_datasets
from .hookspecs import provide_learners as provide_learners
from .parameters import among as among
from .parameters import inside as inside
from .parameters import linear as linear
from .parameters import log as log
from .parameters import param as param
from .protocols import DIVERGED as DIVERGED
from .protocols import BudgetedLearner as BudgetedLearner
from .protocols import BudgetedModel as BudgetedModel
from .protocols import Dataset as Dataset
from .protocols import FitContext as FitContext
from .protocols import Metric as Metric
from .protocols import MetricValues as MetricValues
from .protocols import Source as Source
from .splits import Splits as Splits

__version__: str
