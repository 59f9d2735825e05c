"""Code that Dask and Spark share."""
