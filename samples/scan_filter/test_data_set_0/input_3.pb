	B
use_filterJ